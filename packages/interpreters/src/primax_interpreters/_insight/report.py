"""The report that ``explain`` returns."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from primax_core.extend.runtime import Change, Signature

from .collectives import Collective, Traffic, traffic_of
from .costs import Sum, Tally
from .described import Described
from .drawing import Drawing
from .kernels import Kernel
from .memory import Peak
from .phases import Phase
from .places import Line


class CompiledMemory(NamedTuple):
    """XLA's figures for the compiled program, in bytes; ``None`` where it gives none.

    Attributes:
      arguments, results: their buffers.
      temporaries: what else the buffer assignment holds.
      aliased: results that take over buffers of arguments.
      code: the generated code.
      peak: the most that is needed at once.
    """

    arguments: int | None
    results: int | None
    temporaries: int | None
    aliased: int | None
    code: int | None
    peak: int | None


class Report:
    """The operations of a function, their cost, and the results of compilation.

    ``print(report)`` shows it as text, :meth:`to_html` as a page; in a notebook it shows itself.

    Attributes:
      name, place: the function, and where it is defined.
      platform: what it was compiled for.
      signatures: all signatures it was traced for so far, in order.
      equations: how many equations the program has, with those of programs within it.
      tally: the estimated cost by line and by primitive; see ``total`` and ``lines``.
      xla_cost: XLA's own figures for the compiled program.
      peak: the estimated peak of memory, before fusion.
      memory: the compiled program's memory.
      kernels: what the compiled program runs.
      num_devices: how many devices it runs on.
      collectives: the operations with which these exchange values; see ``communication``.
      phases: what was traced, lowered, compiled or loaded, and how long it took.
      notes: what else there is to know of the figures.
      jaxpr: the program.
      described: calls of kernels, and other operations whose parameters describe themselves.
    """

    name: str
    place: str
    platform: str
    jaxpr: Any
    signatures: tuple[Signature, ...]
    equations: int
    tally: Tally
    xla_cost: dict[str, float]
    peak: Peak
    memory: CompiledMemory
    kernels: tuple[Kernel, ...]
    num_devices: int
    collectives: tuple[Collective, ...]
    phases: tuple[Phase, ...]
    notes: tuple[str, ...]
    drawing: Drawing
    described: tuple[Described, ...]

    def __init__(self, **fields: Any):
        for name, value in fields.items():
            setattr(self, name, value)

    @property
    def total(self) -> Sum:
        """The estimated cost of one call."""
        return self.tally.total

    @property
    def communication(self) -> dict[tuple[str, tuple[Any, ...] | None], Traffic]:
        """Counts and bytes of the collectives of one call, by kind and mesh axes."""
        groups: dict[tuple[str, tuple[Any, ...] | None], list[Collective]] = {}
        for c in self.collectives:
            groups.setdefault((c.kind, c.axes), []).append(c)
        return {key: traffic_of(group) for key, group in groups.items()}

    @property
    def lines(self) -> dict[Line, Sum]:
        """The estimated cost by line of source, the most expensive first."""
        items = self.tally.lines.items()
        return dict(sorted(items, key=lambda i: (-i[1].flops, -i[1].bytes)))

    @property
    def changes(self) -> tuple[Change, ...]:
        """Differences from the closest earlier signature: the reasons for retracing."""
        return next((s.changes for s in self.signatures if s.current), ())

    def __str__(self) -> str:
        from .text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return f"<Report on {self.name}: print it, or write it with to_html>"

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report as one self-contained page, written to ``path`` if that is given."""
        from .page import as_page

        page = as_page(self)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def _repr_html_(self) -> str:
        from .page import as_fragment

        return as_fragment(self)
