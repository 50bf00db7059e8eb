"""Operations whose parameters describe themselves, such as calls of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from primax_core.extend import Jaxpr, jaxprs_in

from .places import Line, Places


class Described(NamedTuple):
    """Equations of a program with equal descriptions.

    Attributes:
      primitive: name of the primitive.
      line: the line of the first of them.
      count: their number.
      title: a name, such as that of a kernel.
      details: further lines of the description.
    """

    primitive: str
    line: Line
    count: int
    title: str
    details: tuple[str, ...]


def described_in(jaxpr: Jaxpr, places: Places) -> tuple[Described, ...]:
    """The described operations of a program.

    A parameter takes part by a method ``explain_lines``, which returns a title and further lines.
    """
    groups: dict[tuple[str, Line, tuple[str, ...]], int] = {}
    for name, line, lines in _descriptions(jaxpr, places, None):
        groups[name, line, lines] = groups.get((name, line, lines), 0) + 1
    return tuple(
        Described(name, line, count, lines[0], lines[1:])
        for (name, line, lines), count in groups.items()
    )


def _descriptions(
    jaxpr: Jaxpr, places: Places, around: Line | None
) -> Iterator[tuple[str, Line, tuple[str, ...]]]:
    for eqn in jaxpr.eqns:
        line = places.line(eqn.source_info, *([] if around is None else [around]))
        for value in eqn.params.values():
            lines: Sequence[str] | None = _lines_of(value)
            if lines:
                yield eqn.primitive.name, line, tuple(lines)
        for inner in jaxprs_in(eqn.params):
            yield from _descriptions(inner, places, line)


def _lines_of(value: Any) -> Sequence[str] | None:
    method = getattr(type(value), "explain_lines", None)
    return None if method is None else method(value)
