"""Layouts and memory kinds of the arguments and results of an executable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ir.jaxpr import Jaxpr, Literal
from .._ir.rule_results import check_count
from .._ir.rules import memory_kinds
from .._runtime.layouts import Layout, canonical, from_xla


class Formats:
    """Layouts and memory kinds that differ from the defaults.

    Attributes:
      in_layouts, out_layouts: canonical layouts; ``None`` is row-major.
      out_kinds: memory kinds of the results; ``None`` is the default memory kind.
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
        """The formats of a jaxpr; ``None`` if all are the default."""
        if in_layouts is None:
            in_layouts = [s.layout for s in in_specs]
        if out_layouts is None:
            out_layouts = [None] * len(jaxpr.outvars)
        own = result_kinds(jaxpr)
        out_kinds = own if out_kinds is None else [k or o for k, o in zip(out_kinds, own)]
        if not any((*in_layouts, *out_layouts, *out_kinds)):
            return None
        return cls(in_layouts, out_layouts, out_kinds)

    def chosen(
        self, raw: Any, used_inputs: Sequence[int] | None, n_consts: int
    ) -> tuple[list, list]:
        """Layouts of the arguments and results of jaxlib's executable, with those chosen by the
        compiler."""
        ins, outs = list(self.in_layouts), list(self.out_layouts)
        if Layout.AUTO in ins:
            indices = range(len(ins)) if used_inputs is None else used_inputs
            for i, actual in zip(indices, raw.get_parameter_layouts()[n_consts:], strict=True):
                ins[i] = _known(ins[i], actual)
            ins = [None if x is Layout.AUTO else x for x in ins]  # unused arguments
        if Layout.AUTO in outs:
            outs = [_known(x, actual) for x, actual in zip(outs, raw.get_output_layouts())]
        return ins, outs


def _known(layout: Any, actual: Any) -> Any:
    if layout is not Layout.AUTO:
        return layout
    layout = from_xla(str(actual))
    return canonical(layout, layout.major_to_minor)


def result_kinds(jaxpr: Jaxpr) -> list[str | None]:
    """Memory kinds of the results of a jaxpr."""
    result = jaxpr.cache.get("kinds")
    if result is None:
        kinds: dict[Any, str | None] = {}
        for eqn in jaxpr.eqns:
            rule = eqn.primitive.rules.get(memory_kinds)
            if rule is not None:
                n = len(eqn.outvars)
                listed = check_count(eqn.primitive, memory_kinds, rule, rule(eqn), n, "results")
                kinds.update(zip(eqn.outvars, listed))
        result = [None if type(v) is Literal else kinds.get(v) for v in jaxpr.outvars]
        jaxpr.cache["kinds"] = result
    return result
