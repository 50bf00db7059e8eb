"""Search for the operation that gave the first NaN or infinity, for ``debug_nans``.

The jaxpr is run again, equation by equation, on the arguments that led to the NaN. Operations that
hold jaxprs (compiled functions, conditionals, loops, custom derivatives) describe by a rule of the
kind ``run_jaxprs`` which of them they run on which values, so the search continues inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base.config import debug_infs, debug_nans
from .._base.source import capture, summarize
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.jaxpr import Eqn, Jaxpr, Literal
from .._ir.rules import expand, run_jaxprs
from .._trace import core
from .._trace.core import set_trace, typeof
from .._transform.expansion import expanded

_MOVES: Final = frozenset((
    "all_gather", "all_to_all", "bitcast_convert_type", "broadcast_in_dim", "complex",
    "concatenate", "conj", "copy", "copy_p", "device_put", "expand_dims", "imag", "iota",
    "optimization_barrier", "pad", "ppermute", "pvary", "real", "reshape", "rev", "select_n",
    "sharding_constraint", "slice", "sort", "split", "squeeze", "stack", "stop_gradient", "tile",
    "top_k", "transpose",
))  # fmt: skip
"""Operations that compute nothing: a NaN in a result was in an operand."""

_TESTS: Final[dict[str, Callable[[Any], Any]]] = {"nan": np.isnan, "inf": np.isinf}


def first_place(jaxpr: Jaxpr, args: Sequence[Any], what: str) -> str | None:
    """``primitive (at file:line:column (function))`` of the first NaN or infinity.

    Args:
      args: concrete arrays for which the jaxpr gave one.
      what: ``"nan"`` or ``"inf"``.

    Returns:
      ``None`` if the operation cannot be found: an argument was donated, the jaxpr has effects
      that must not happen twice, or the values are finite when operations run one by one.
    """
    if any(e.keeps and not e.shows for e in jaxpr.effects) or any(a.is_deleted() for a in args):
        return None
    search = _Search(_TESTS[what])
    try:
        with debug_nans(False), debug_infs(False), set_trace(None):
            search.step_into(jaxpr, args, capture())
    except _Found as found:
        return f"{found.name} (at {summarize(found.place)})"
    return None


class _Found(Exception):
    """The operation was found."""

    def __init__(self, name: str, place: Any):
        self.name: str = name
        self.place: Any = place


class _Search:
    """An evaluation that ends at the first value of some sort.

    Attributes:
      is_bad: elementwise test for the values that are searched for.
      seen: jaxprs that ran before, the bodies of loops among them.
    """

    def __init__(self, is_bad: Callable[[Any], Any]):
        self.is_bad: Callable[[Any], Any] = is_bad
        self.seen: set[Jaxpr] = set()

    def run(self, jaxpr: Jaxpr, args: Sequence[Any], place: Any) -> list[Any]:
        """Run a jaxpr that an equation at ``place`` holds; later runs of a body are compiled."""
        if jaxpr in self.seen and not jaxpr.effects:
            outs = core.run_eagerly(jaxpr, list(args))
            if not any(map(self.has_bad, outs)):
                return outs
        self.seen.add(jaxpr)
        return self.step_into(jaxpr, args, place)

    def step_into(self, jaxpr: Jaxpr, args: Sequence[Any], place: Any) -> list[Any]:
        """Run a jaxpr equation by equation; ``place`` is that of equations without their own."""
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts))
        env.update(zip(jaxpr.invars, args, strict=True))
        located = jaxpr.debug_info.filename is not None  # others are shared by many lines
        for eqn in jaxpr.eqns:
            if eqn.effects and all(e.shows for e in eqn.effects):
                continue
            values = [v if type(v) is Literal else env[v] for v in eqn.invars]
            at = (eqn.source_info or place) if located else place
            outs = self.apply(eqn, values, at)
            if eqn.primitive.name not in _MOVES and any(map(self.has_bad, outs)):
                raise _Found(eqn.primitive.name, at)
            env.update(zip(eqn.outvars, outs, strict=True))
        return [v if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def apply(self, eqn: Eqn, values: list[Any], place: Any) -> list[Any]:
        """The results of an equation, searching the jaxprs that it runs."""
        prim = eqn.primitive

        def run(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
            return self.run(jaxpr, args, place)

        rule = prim.rules.get(run_jaxprs)
        if rule is not None:
            outs = rule(run, values, **eqn.params)
            if outs is not None:
                return list(outs)
        elif expand in prim.rules:
            inner = expanded(prim, [typeof(x) for x in values], eqn.params)
            assert inner is not None
            return run(inner, values)
        out = prim.bind(*values, **eqn.params)
        return list(out) if prim.multiple_results else [out]

    def has_bad(self, x: Any) -> bool:
        """Whether an array has an element that is searched for."""
        aval = typeof(x)
        if type(aval) is not ShapedArray or not dtypes.issubdtype(aval.dtype, np.inexact):
            return False
        return bool(self.is_bad(np.asarray(x.val if type(x) is Literal else x)).any())
