"""Reports as self-contained HTML pages."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .costs import Sum
from .drawing import dark_rules
from .places import Line
from .text import (
    communication,
    described,
    flops,
    marks,
    operations,
    origin,
    quantity,
    seconds,
    share,
    size,
    traffic,
)

if TYPE_CHECKING:
    from .report import Report

_STYLE = """
.primax-report { font: 14px/1.45 system-ui, sans-serif; max-width: 1100px; color: var(--text);
  --text: #222; --line: #e4e4e4; --head: #f5f5f5; --card: #f5f7fa; --note: #666; }
.primax-report h1 { font-size: 22px; } .primax-report h2 { font-size: 17px; margin: 28px 0 8px; }
.primax-report table { border-collapse: collapse; margin: 8px 0; }
.primax-report th, .primax-report td { padding: 2px 10px; text-align: right;
  border-bottom: 1px solid var(--line); }
.primax-report th { cursor: pointer; background: var(--head); }
.primax-report .l { text-align: left; } .primax-report code, .primax-report pre {
  font: 12px/1.5 ui-monospace, monospace; }
.primax-report .cards { display: flex; flex-wrap: wrap; gap: 12px; }
.primax-report .card { background: var(--card); border-radius: 8px; padding: 8px 14px; }
.primax-report .card b { display: block; font-size: 18px; }
.primax-report .scroll { overflow: auto; max-height: 640px; border: 1px solid var(--line); }
.primax-report .source td { border: 0; padding: 0 8px; white-space: pre; }
.primax-report .source .hot { background: rgba(230, 120, 40, var(--heat)); }
.primax-report .note { color: var(--note); }
"""
_DARK = "--text: #ddd; --line: #444; --head: #2a2a2a; --card: #262a30; --note: #aaa;"
# Themes that are chosen on the page precede that of the system: of this documentation, JupyterLab
# and Visual Studio Code.
_CHOSEN_LIGHT = ("[data-theme=light]", "[data-jp-theme-light=true]", ".vscode-light")
_CHOSEN_DARK = ("[data-theme=dark]", "[data-jp-theme-light=false]", ".vscode-dark")

_SCRIPT = """
document.querySelectorAll('.primax-report table.sorted th').forEach(function (head) {
  head.addEventListener('click', function () {
    var at = Array.prototype.indexOf.call(head.parentNode.children, head);
    var body = head.closest('table').tBodies[0];
    var down = head.dataset.down = head.dataset.down === '1' ? '0' : '1';
    Array.prototype.slice.call(body.rows).sort(function (a, b) {
      var x = a.cells[at], y = b.cells[at];
      var u = x.dataset.n, v = y.dataset.n;
      var order = u !== undefined ? v - u : x.textContent.localeCompare(y.textContent);
      return down === '1' ? order : -order;
    }).forEach(function (row) { body.appendChild(row); });
  });
});
"""

_MOST_ROWS = 200


def as_page(report: Report) -> str:
    """A whole document."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(report.name)}</title></head>\n<body>{as_fragment(report)}</body></html>\n"
    )


def as_fragment(report: Report) -> str:
    """The report as an element of a page."""
    sections = (
        _summary(report), _history(report), _phases(report), _picture(report), _lines(report),
        _sources(report), _memory(report), _communication(report), _kernels(report),
        _primitives(report), _notes(report),
    )  # fmt: skip
    return (
        f'<div class="primax-report"><style>{_STYLE}{_dark_style()}</style>\n'
        + "\n".join(sections)
        + f"\n<script>{_SCRIPT}</script></div>"
    )


def _dark_style() -> str:
    """The rules for dark themes: of the page, and of the system if the page chooses none."""
    rules = {"": _DARK, **dark_rules()}
    chosen = ", ".join((*_CHOSEN_LIGHT, *_CHOSEN_DARK))
    unchosen = f":root:not(:has({chosen}), {chosen})"

    def within(theme: str) -> list[str]:
        return [f"{theme} .primax-report {part} {{ {body} }}" for part, body in rules.items()]

    system = ["@media (prefers-color-scheme: dark) {", *within(unchosen), "}"]
    return "\n".join(system + [line for theme in _CHOSEN_DARK for line in within(theme)]) + "\n"


class Cell:
    """A cell with the number it is sorted by."""

    __slots__ = ("text", "number")

    def __init__(self, text: str, number: float):
        self.text = text
        self.number = number


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[int] = (0,)) -> str:
    def cell(i: int, value: Any) -> str:
        kind = ' class="l"' if i in left else ""
        if isinstance(value, Cell):
            return f'<td{kind} data-n="{value.number:g}">{escape(value.text)}</td>'
        if isinstance(value, (int, float)):
            return f'<td{kind} data-n="{value}">{value}</td>'
        return f"<td{kind}>{escape(str(value))}</td>"

    titles = "".join(
        f"<th{' class=' + chr(34) + 'l' + chr(34) if i in left else ''}>{escape(h)}</th>"
        for i, h in enumerate(head)
    )
    body = "\n".join(
        "<tr>" + "".join(cell(i, v) for i, v in enumerate(row)) + "</tr>"
        for row in rows[:_MOST_ROWS]
    )
    more = ""
    if len(rows) > _MOST_ROWS:
        more = f'<p class="note">and {len(rows) - _MOST_ROWS} more</p>'
    return (
        f'<table class="sorted"><thead><tr>{titles}</tr></thead>\n<tbody>{body}</tbody></table>'
        f"{more}"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n{body}</section>"


def _summary(report: Report) -> str:
    m = report.memory
    compiled = sum(x for x in (m.arguments, m.results, m.temporaries) if x) - (m.aliased or 0)
    cards = (
        ("flops, estimated", flops(report.total)),
        ("flops, by XLA", quantity(report.xla_cost.get("flops"))),
        ("special functions", quantity(report.total.special)),
        ("memory traffic before fusion", traffic(report.total)),
        ("memory of the compiled program", size(m.peak or compiled)),
        ("equations", str(report.equations)),
        ("kernels", str(len(report.kernels))),
    )
    shown = "".join(
        f'<div class="card">{escape(what)}<b>{escape(value)}</b></div>' for what, value in cards
    )
    return (
        f"<h1>{escape(report.name)}</h1>"
        f'<p class="note">{escape(report.place)} on {escape(report.platform)}</p>'
        f'<div class="cards">{shown}</div>'
    )


def _history(report: Report) -> str:
    items = []
    for i, s in enumerate(report.signatures):
        shown = ", ".join(f"{n}: {t}" for n, t in s.arguments)
        text = f"<code>{escape(shown)}</code>" + (" (this one)" if s.current else "")
        if i:
            why = "".join(f"<li>{escape(str(c))}</li>" for c in s.changes)
            text += f"<ul>{why or '<li>traced again</li>'}</ul>"
        items.append(f"<li>{text}</li>")
    return _section("Signatures it was traced for", f"<ol>{''.join(items)}</ol>")


def _phases(report: Report) -> str:
    rows = [
        (p.name, Cell(seconds(p.seconds), -1 if p.seconds is None else p.seconds), p.what)
        for p in report.phases
    ]
    return _section("What happened", _table(("phase", "time", "what"), rows, (0, 2)))


def _picture(report: Report) -> str:
    return _section("The program", f'<div class="scroll">{report.drawing.svg()}</div>')


def _of_sum(s: Sum, total: Sum) -> tuple:
    return (
        Cell(flops(s), s.flops), Cell(share(s.flops, total.flops), s.flops),
        Cell(quantity(s.special), s.special), Cell(traffic(s), s.bytes), s.equations,
    )  # fmt: skip


_HEAD = ("flops", "share", "special functions", "memory traffic", "equations")


def _lines(report: Report) -> str:
    total = report.total
    rows = [(ln.short, ln.text, *_of_sum(s, total)) for ln, s in report.lines.items()]
    legend = "".join(f'<p class="note">{escape(m)}</p>' for m in marks(total))
    body = _table(("line", "source", *_HEAD), rows, (0, 1)) + legend
    return _section("Cost by line, estimated before fusion", body)


def _sources(report: Report) -> str:
    files: dict[str, dict[int, Sum]] = {}
    for ln, s in report.lines.items():
        if ln.number:
            here = files.setdefault(ln.file, {})
            here.setdefault(ln.number, Sum()).add(s)
    most = max((s.flops + s.special for by in files.values() for s in by.values()), default=0)
    bodies = [
        f"<p><code>{escape(file)}</code></p>{_annotated(file, by, most)}"
        for file, by in files.items()
    ]
    return _section("Source", "\n".join(bodies))


def _annotated(file: str, by: dict[int, Sum], most: float) -> str:
    near = sorted({n + d for n in by for d in range(-2, 3) if n + d > 0})[:400]
    rows, before = [], 0
    for n in near:
        text = linecache.getline(file, n).rstrip("\n")
        if not text and n not in by:
            continue
        if before and n > before + 1:
            rows.append('<tr><td>⋮</td><td></td><td class="l"></td></tr>')
        before = n
        s = by.get(n)
        heat = 0.6 * (s.flops + s.special) / most if s is not None and most else 0
        hot = f' class="hot" style="--heat:{heat:.2f}"' if heat else ""
        cost = escape(flops(s)) if s is not None else ""
        rows.append(
            f'<tr{hot}><td>{n}</td><td>{cost}</td><td class="l"><code>{escape(text)}</code></td>'
            "</tr>"
        )
    return f'<table class="source"><tbody>{"".join(rows)}</tbody></table>'


def _memory(report: Report) -> str:
    m, peak = report.memory, report.peak
    rows = [
        (name, "unknown" if value is None else Cell(size(value), value))
        for name, value in m._asdict().items()
    ]
    held = [(_where(h.line), Cell(size(h.bytes), h.bytes), h.values, h.largest) for h in peak.held]
    text = f"Estimate before fusion: {size(peak.bytes)} at the peak, {_where(peak.line)}."
    return _section(
        "Memory",
        f"<p>Of the compiled program:</p>{_table(('buffers', 'size'), rows)}<p>{escape(text)}</p>"
        + _table(("alive at the peak", "size", "values", "largest"), held),
    )


def _where(line: Line) -> str:
    return f"{line.short}  {line.text}" if line.number else "arguments"


def _communication(report: Report) -> str:
    if report.num_devices == 1:
        return ""
    rows = []
    for c in report.collectives:
        lines, what = origin(c)
        source = "; ".join(ln.text for ln in c.lines)
        times = "unknown" if c.times is None else c.times
        bytes, sent = Cell(size(c.bytes), c.bytes), Cell(size(c.sent), c.sent)
        rows.append((c.kind, c.along, lines, source, what, bytes, sent, times))
    head = ("collective", "mesh axes", "line", "source", "for", "size", "sent by each", "times")
    table = _table(head, rows, (0, 1, 2, 3, 4)) if rows else ""
    return _section("Communication", f"<p>{escape(communication(report))}</p>{table}")


def _kernels(report: Report) -> str:
    kinds = Counter(k.kind for k in report.kernels)
    rows = [
        (
            k.name, k.kind, "unknown" if k.times is None else k.times, k.result,
            operations(k.operations), " ".join(k.scopes), ", ".join(ln.short for ln in k.lines),
        )
        for k in report.kernels
    ]  # fmt: skip
    head = ("kernel", "kind", "times", "result", "computes", "scopes", "from")
    counts = ", ".join(f"{n} {k}" for k, n in kinds.most_common()) or "none"
    return _section(
        "Kernels of the compiled program",
        f"<p>{escape(counts)}</p>{_table(head, rows, (0, 1, 3, 4, 5, 6))}",
    )


def _primitives(report: Report) -> str:
    total = report.total
    dearest = sorted(report.tally.primitives.items(), key=lambda i: -i[1].flops)
    rows = [(name, *_of_sum(s, total)) for name, s in dearest]
    calls = "\n".join(line for d in report.described for line in described(d))
    return _section(
        "Cost by primitive",
        _table(("primitive", *_HEAD), rows) + (f"<pre>{escape(calls)}</pre>" if calls else ""),
    )


def _notes(report: Report) -> str:
    if not report.notes:
        return ""
    return _section("Notes", "".join(f"<p>{escape(n)}</p>" for n in report.notes))
