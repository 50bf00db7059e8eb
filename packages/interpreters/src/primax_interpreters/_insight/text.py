"""Reports as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .collectives import Collective, traffic_of
from .costs import Sum

if TYPE_CHECKING:
    from .described import Described
    from .report import Report

_ROWS = 15


def quantity(n: float | None, mark: str = "") -> str:
    """A number with a unit prefix: ``12.3 M``."""
    if n is None:
        return "unknown"
    for size, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if n >= size:
            factor = 1e3 if unit == "k" else size
            return f"{mark}{n / factor:.3g} {unit}"
    return f"{mark}{n:.0f}"


def size(n: float | None) -> str:
    """Bytes with a unit prefix."""
    if n is None:
        return "unknown"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.3g} {unit}"
        n /= 1024
    return f"{n:.4g} TiB"


def seconds(s: float | None) -> str:
    """A duration with its unit."""
    if s is None:
        return "-"
    return f"{s * 1e3:.1f} ms" if s < 1 else f"{s:.2f} s"


def flops(s: Sum) -> str:
    """Operations, marked ``~`` where estimated and ``+`` where there are more."""
    text = quantity(s.flops, "~" if s.estimated else "")
    return text + ("+" if s.repeated or s.unknown else "")


def traffic(s: Sum) -> str:
    """Bytes read and written, marked ``+`` where there are more."""
    return size(s.bytes) + ("+" if s.repeated else "")


def share(part: float, whole: float) -> str:
    """A share in per cent."""
    return f"{100 * part / whole:.0f} %" if whole else ""


def marks(total: Sum) -> list[str]:
    """Legend of the marks of a report's figures."""
    legend = []
    if total.estimated:
        legend.append("~ holds an estimate: a formula's leading term, or the dearest branch")
    if total.repeated:
        legend.append("+ holds a loop whose number of steps is unknown; one step is counted")
    if total.unknown:
        legend.append("+ holds operations whose cost is unknown (callbacks, other programs)")
    return legend


def operations(counts: dict[str, int]) -> str:
    """The operations of a kernel: ``add, 2 multiply``."""
    return ", ".join(f"{n} {name}" if n > 1 else name for name, n in counts.items())


def as_text(report: Report) -> str:
    """The whole report."""
    parts = [
        f"{report.name} {report.place}".rstrip() + f" on {report.platform}",
        _history(report), _happened(report), _program(report), _cost(report), _memory(report),
        *_communication(report), _kernels(report),
    ]  # fmt: skip
    if report.notes:
        parts.append("Notes\n" + "\n".join(f"  {n}" for n in report.notes))
    return "\n\n".join(parts) + "\n"


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"  {ln}".rstrip() for ln in lines)])


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> list[str]:
    """Aligned columns; the first ``left`` ones and the last to the left."""
    cells = [list(head), *([str(c) for c in row] for row in rows)]
    widths = [max(len(r[i]) for r in cells) for i in range(len(head))]

    def line(row: list[str]) -> str:
        last = len(row) - 1
        return "  ".join(
            c.ljust(w) if i < left or i == last else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths))
        ).rstrip()

    return [line(cells[0]), "  ".join("-" * w for w in widths), *map(line, cells[1:])]


def _cut(rows: list, what: str, lines: list[str]) -> list[str]:
    return lines + ([f"... and {len(rows) - _ROWS} more {what}"] if len(rows) > _ROWS else [])


def _history(report: Report) -> str:
    lines = []
    for i, s in enumerate(report.signatures, 1):
        shown = ", ".join(f"{n}: {t}" for n, t in s.arguments[:8])
        more = f", ... ({len(s.arguments)} arguments)" if len(s.arguments) > 8 else ""
        lines.append(f"{'>' if s.current else ' '} {i}. {shown}{more}")
        if i > 1:
            lines += [f"     because of {c}" for c in s.changes[:6]] or ["     traced again"]
    return _section("Signatures it was traced for (> this one)", lines)


def _happened(report: Report) -> str:
    rows = [(p.name, seconds(p.seconds), p.what) for p in report.phases]
    return _section("What happened", table(("phase", "time", "what"), rows))


def _program(report: Report) -> str:
    by_name = sorted(report.tally.primitives.items(), key=lambda i: -i[1].equations)
    rows = [(n, s.equations, flops(s), traffic(s)) for n, s in by_name]
    top = len(report.jaxpr.eqns)
    head = f"{report.equations} equations ({top} at the top level), {report.tally.depth} deep"
    lines = table(("primitive", "equations", "flops", "memory traffic"), rows[:_ROWS])
    return _section("Program", [head, "", *_cut(rows, "primitives", lines), *_described(report)])


def _described(report: Report) -> list[str]:
    """Names and further lines of kernels that the program calls, indented."""
    lines = [line for d in report.described[:_ROWS] for line in described(d)]
    return ["", *_cut(list(report.described), "calls", lines)] if lines else []


def described(d: Described) -> list[str]:
    """The lines of an operation that describes itself."""
    times = f", {d.count} times" if d.count > 1 else ""
    head = f"{d.primitive} {d.title} at {d.line.short}{times}"
    return [head, *(f"  {line}" for line in d.details)]


def _cost(report: Report) -> str:
    total, xla = report.total, report.xla_cost
    ours = f"{flops(total)} flops, {quantity(total.special)} special functions, {traffic(total)}"
    lines = [f"estimated from types, before fusion: {ours}"]
    if xla:
        lines.append(
            f"XLA's count of the compiled program: {quantity(xla.get('flops'))} flops, "
            f"{quantity(xla.get('transcendentals', 0))} special functions, "
            f"{size(xla.get('bytes accessed'))}"
        )
    rows = [
        (ln.short, flops(s), share(s.flops, total.flops), quantity(s.special), traffic(s),
         s.equations, ln.text[:60])
        for ln, s in report.lines.items()
    ]  # fmt: skip
    head = ("line", "flops", "", "special", "memory traffic", "equations", "source")
    lines += ["", *_cut(rows, "lines", table(head, rows[:_ROWS])), *marks(total)]
    return _section("Cost of one call", lines)


def _memory(report: Report) -> str:
    m, peak = report.memory, report.peak
    lines = [
        f"compiled: arguments {size(m.arguments)}, results {size(m.results)}, "
        f"temporaries {size(m.temporaries)}, reused from arguments {size(m.aliased)}"
    ]
    if m.peak is not None:
        lines.append(f"compiled: {size(m.peak)} at the peak")
    where = f" at {peak.line.short}" if peak.line.number else ""
    lines.append(f"estimate before fusion: {size(peak.bytes)} at the peak{where}, when there are")
    for h in peak.held[:8]:
        origin = f"made at {h.line.short}  {h.line.text[:50]}" if h.line.number else "arguments"
        lines.append(f"  {size(h.bytes):>10}  {h.values} x up to {h.largest}, {origin}")
    return _section("Memory", lines)


def communication(report: Report) -> str:
    """The collectives of one call in a sentence."""
    total = traffic_of(report.collectives)
    if not total.count:
        return f"nothing: the {report.num_devices} devices exchange no values"
    more = "+" if total.repeated else ""
    one = "" if total.count == 1 else "s"
    return (
        f"{total.count}{more} collective{one} on {report.num_devices} devices, {size(total.bytes)}"
        f"{more}; each device sends at least {size(total.sent)}{more}"
    )


def origin(c: Collective) -> tuple[str, str]:
    """The lines of a collective, and what it was made for."""
    lines = ", ".join(ln.short for ln in c.lines[:3]) + (", ..." if len(c.lines) > 3 else "")
    what = ", ".join(c.operations[:3])
    if c.added is not False:
        what = f"{what} (added by XLA)" if what else "unknown (XLA does not say)"
    return lines or "unknown", what


def _communication(report: Report) -> list[str]:
    if report.num_devices == 1:
        return []
    rows = []
    for c in report.collectives:
        where, what = origin(c)
        times = "?" if c.times is None else str(c.times)
        rows.append((c.kind, c.along, where, what, size(c.bytes), times, _source(c)))
    head = ("collective", "mesh axes", "line", "for", "size", "times", "source")
    lines = [communication(report)]
    lines += ["", *_cut(rows, "collectives", table(head, rows[:_ROWS], 4))] if rows else []
    return [_section("Communication", lines)]


def _source(c: Collective) -> str:
    return c.lines[0].text[:50] if c.lines else ""


def _kernels(report: Report) -> str:
    kinds = Counter(k.kind for k in report.kernels)
    lines = [f"{len(report.kernels)}: " + ", ".join(f"{n} {k}" for k, n in kinds.most_common())]
    rows = []
    for k in report.kernels:
        where = ", ".join(ln.short for ln in k.lines[:3]) + (", ..." if len(k.lines) > 3 else "")
        times = "?" if k.times is None else str(k.times)
        rows.append((k.name[:32], k.kind[:24], times, operations(k.operations)[:44], where))
    head = ("kernel", "kind", "times", "computes", "from")
    lines += ["", *_cut(rows, "kernels", table(head, rows[:_ROWS], 2))] if rows else []
    return _section("Kernels of the compiled program", lines)
