"""Layouts and kinds of memory of a compiled program's arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ir.jaxpr import Jaxpr, Literal
from .._ir.rules import memory_kinds
from .._runtime.layouts import Layout, canonical, from_xla


class Formats:
    """What is not as usual with the arguments and results of a program.

    Attributes:
      in_layouts, out_layouts: canonical layouts, ``None`` where row-major.
      out_kinds: kinds of memory of the results, ``None`` where it is the one that programs work in.
    """

    __slots__ = ("in_layouts", "out_layouts", "out_kinds")

    def __init__(
        self, in_layouts: Sequence[Any], out_layouts: Sequence[Any], out_kinds: Sequence[str | None]
    ):
        self.in_layouts = list(in_layouts)
        self.out_layouts = list(out_layouts)
        self.out_kinds = list(out_kinds)

    @classmethod
    def of(
        cls, jaxpr: Jaxpr, in_specs: Sequence[Any], in_layouts: Sequence[Any] | None,
        out_layouts: Sequence[Any] | None, out_kinds: Sequence[str | None] | None = None,
    ) -> Formats | None:  # fmt: skip
        """The formats of a program, ``None`` if all are usual."""
        if in_layouts is None:
            in_layouts = [s.layout for s in in_specs]
        if out_layouts is None:
            out_layouts = [None] * len(jaxpr.outvars)
        own = result_kinds(jaxpr)
        out_kinds = own if out_kinds is None else [k or o for k, o in zip(out_kinds, own)]
        if not any((*in_layouts, *out_layouts, *out_kinds)):
            return None
        return cls(in_layouts, out_layouts, out_kinds)

    def chosen(self, raw: Any, kept: Sequence[int] | None, n_consts: int) -> tuple[list, list]:
        """Layouts of the arguments and results of jaxlib's executable, where the compiler chose
        some."""
        ins, outs = list(self.in_layouts), list(self.out_layouts)
        if Layout.AUTO in ins:
            places = range(len(ins)) if kept is None else kept
            for i, found in zip(places, raw.get_parameter_layouts()[n_consts:], strict=True):
                ins[i] = _known(ins[i], found)
            ins = [None if x is Layout.AUTO else x for x in ins]  # of arguments that are not read
        if Layout.AUTO in outs:
            outs = [_known(x, found) for x, found in zip(outs, raw.get_output_layouts())]
        return ins, outs


def _known(layout: Any, found: Any) -> Any:
    if layout is not Layout.AUTO:
        return layout
    layout = from_xla(str(found))
    return canonical(layout, layout.major_to_minor)


def result_kinds(jaxpr: Jaxpr) -> list[str | None]:
    """Kinds of memory that a program leaves its results in."""
    found = jaxpr.cache.get("kinds")
    if found is None:
        kinds: dict[Any, str | None] = {}
        for eqn in jaxpr.eqns:
            rule = eqn.primitive.rules.get(memory_kinds)
            if rule is not None:
                kinds.update(zip(eqn.outvars, rule(eqn), strict=True))
        found = [None if type(v) is Literal else kinds.get(v) for v in jaxpr.outvars]
        jaxpr.cache["kinds"] = found
    return found
