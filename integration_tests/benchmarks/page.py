"""The page of figures, ``docs/benchmarks.md``: one section for each group, replaced one by one.

    python -m integration_tests.benchmarks --write               # measures and writes
    python -m integration_tests.benchmarks --from-json FILE --write   # writes an earlier run
    python -m integration_tests.benchmarks.page                  # figures of the design page

A section states its own date, versions and machine, so that one group can be measured again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "benchmarks.md"
DESIGN: Final = ROOT / "docs" / "design" / "benchmarks.md"
RECORDED: Final = "Recorded figures"
HEAD: Final = """# Benchmarks

`nox -s bench -- --write` writes this page. Each case runs under jax and under Primax in turn, in
separate processes. The figures are medians over the rounds. A ratio below 1 means that Primax is
faster or smaller. A budget is the largest ratio that the design allows.

`nox -s bench -- --only GROUP --write` measures one group again and replaces its section. Each
section states the date, the versions and the machine.
[Benchmarks of the design](design/benchmarks.md)
has the reasons for cases over their budget.
"""
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_SUMMARY: Final = "Summary"
_LOADED: Final = 0.5  # load for each core from which a run counts as done beside other work


def update(
    page: str, document: dict[str, Any], complete: Iterable[str], groups: Iterable[str]
) -> str:
    """The page with the sections of the complete groups of a run in place of earlier ones.

    Args:
      page: the text of the page; may be empty.
      document: the JSON document of a run.
      complete: the groups of which the run measured every case.
      groups: all groups; the recorded figures are removed when each has a section.
    """
    parts = sections(page)
    for group in complete:
        parts[group] = "\n".join(_section(group, document)) + "\n"
    if {*groups} <= {*parts}:
        parts.pop(RECORDED, None)
    return text_of(parts)


def sections(page: str) -> dict[str, str]:
    """The sections of a page by group, without the summary."""
    texts = _SECTION.split(page)[1:]
    parts = {title: body.strip("\n") + "\n" for title, body in zip(texts[::2], texts[1::2])}
    parts.pop(_SUMMARY, None)
    return parts


def text_of(parts: dict[str, str]) -> str:
    """The page with these sections: measured groups, then recorded figures."""
    ordered = sorted(parts.items(), key=lambda part: part[0] == RECORDED)
    lines = [HEAD, f"## {_SUMMARY}", "", *_summary(parts), ""]
    for title, body in ordered:
        lines += [f"## {title}", "", body]
    return "\n".join(lines)


def _summary(parts: dict[str, str]) -> Iterator[str]:
    yield "| Group | Cases | Geometric mean of the ratios | Over budget | Date |"
    yield "|---|---|---|---|---|"
    for title, body in parts.items():
        rows = [_cells(line) for line in body.splitlines() if line.startswith("| ")][1:]
        ratios = [r for row in rows for r in _numbers(row[3])]
        over = sum(_is_over(row[3], row[4]) for row in rows)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
        date = (re.findall(r"\d{4}-\d\d-\d\d", body) or ["-"])[0]
        yield f"| {title} | {len(rows)} | {mean:.2f} | {over} | {date} |"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def _numbers(cell: str) -> list[float]:
    return [float(part) for part in cell.split(" / ") if re.fullmatch(r"[\d.]+", part)]


def _is_over(ratio: str, budget: str) -> bool:
    """Return True if a ratio exceeds its budget; a row may have several of both."""
    ratios, budgets = ratio.split(" / "), budget.split(" / ")
    if len(budgets) == 1:
        budgets *= len(ratios)
    pairs = [(_numbers(r), _numbers(b)) for r, b in zip(ratios, budgets, strict=False)]
    return any(r and b and r[0] > b[0] for r, b in pairs)


def _section(group: str, document: dict[str, Any]) -> Iterator[str]:
    names = document["reference"], document["candidate"]
    yield f"{_origin(document)} Command: `nox -s bench -- --only {group!r} --write`."
    yield ""
    yield f"| Case | {names[0]} | {names[1]} | Ratio | Budget | Range |"
    yield "|---|---|---|---|---|---|"
    reasons = []
    for row in document["rows"]:
        if row["group"] != group:
            continue
        values = [f"{_figure(row[side])} {row['unit']}" for side in ("reference", "candidate")]
        spread = f"{_figure(row['lowest'])} to {_figure(row['highest'])}"
        name = row["name"].replace("|", "\\|")
        cells = [name, *values, _figure(row["ratio"]), _figure(row["budget"]), spread]
        yield f"| {' | '.join(cells)} |"
        if row["reason"]:
            reasons.append(f"- {row['name']}: {row['reason']}")
    if reasons:
        yield from ["", "Not measured:", "", *reasons]


def _origin(document: dict[str, Any]) -> str:
    """Date, versions and machine of a run, as sentences."""
    on = document["measured_on"]
    versions = ", ".join(f"{name} {number}" for name, number in on["versions"].items() if number)
    processor = on.get("processor") or on["machine"]
    text = f"{on.get('date', '-')}: {versions}; Python {on['python']}; {processor}, "
    text += f"{on['cores']} cores; {document['rounds']} rounds."
    load = on.get("load")
    if load is not None and load > _LOADED * on["cores"]:
        text += f" The machine was not quiet: its load was {load:.1f} at the beginning."
    return text


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def recorded(design: str) -> str:
    """The section with the first table of the design page, and the sentence above it."""
    before, _, after = design.partition("| Case |")
    table = ("| Case |" + after).partition("\n\n")[0]
    origin = before.partition("The table is for ")[2].partition("\n\n")[0].removesuffix(".")
    text = f"Figures of [an earlier run](design/benchmarks.md) with {' '.join(origin.split())}. "
    text += "This section is removed when all groups are measured."
    return f"{text}\n\n{table}\n"


def main() -> None:
    """Put the recorded figures on the page."""
    parts = sections(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    parts[RECORDED] = recorded(DESIGN.read_text("utf-8"))
    PAGE.write_text(text_of(parts), "utf-8")


if __name__ == "__main__":
    main()
