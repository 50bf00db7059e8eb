"""Search for the primitive with the first NaN or infinity, for ``debug_nans``.

The jaxpr is evaluated again, equation by equation, on the same arguments. Call primitives (compiled
functions, conditionals, loops, custom derivatives) have a rule of the kind ``run_jaxprs`` that
evaluates their sub-jaxprs, so the search continues inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base.config import debug_infs, debug_nans, state
from .._base.source import capture, summarize
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.jaxpr import Eqn, Jaxpr, Literal
from .._ir.rule_results import check_count
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
"""Primitives that only move values: a NaN in a result is a NaN of an operand."""

_TESTS: Final[dict[str, Callable[[Any], Any]]] = {"nan": np.isnan, "inf": np.isinf}


def first_location(jaxpr: Jaxpr, args: Sequence[Any], what: str) -> str | None:
    """Return ``primitive (at file:line:column (function))`` of the first NaN or infinity.

    Args:
      args: concrete arrays for which a result of the jaxpr has one.
      what: ``"nan"`` or ``"inf"``.

    Returns:
      ``None`` if the primitive cannot be located: an argument was donated, the jaxpr has effects
      that must not be repeated, or the values are finite if evaluated equation by equation.
    """
    if any(e.keeps and not e.shows for e in jaxpr.effects) or any(a.is_deleted() for a in args):
        return None
    search = _Search(_TESTS[what])
    try:
        with debug_nans(False), debug_infs(False), set_trace(None):
            search.step_into(jaxpr, args, capture())
    except _Located as e:
        return f"{e.name} (at {summarize(e.location)})"
    return None


class _Located(Exception):
    """The first equation with a NaN or infinity is located."""

    def __init__(self, name: str, location: Any):
        self.name: str = name
        self.location: Any = location


class _Search:
    """Evaluation of a jaxpr up to the first result that satisfies a test.

    Attributes:
      is_bad: elementwise test.
      seen: jaxprs that were evaluated before, such as the bodies of loops.
      location: the location of the current equation.
    """

    def __init__(self, is_bad: Callable[[Any], Any]):
        self.is_bad: Callable[[Any], Any] = is_bad
        self.seen: set[Jaxpr] = set()
        self.location: Any = None

    def run(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """Evaluate the sub-jaxpr of the current equation; later evaluations are compiled."""
        location = self.location
        if jaxpr in self.seen and not jaxpr.effects and state.trace is None:
            outs = core.run_eagerly(jaxpr, list(args))
            if not any(map(self.has_bad, outs)):
                return outs
        self.seen.add(jaxpr)
        return self.step_into(jaxpr, args, location)

    def step_into(self, jaxpr: Jaxpr, args: Sequence[Any], location: Any) -> list[Any]:
        """Evaluate equation by equation; ``location`` is the location of equations without one."""
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts))
        env.update(zip(jaxpr.invars, args, strict=True))
        located = jaxpr.debug_info.filename is not None  # others are shared by many lines
        for eqn in jaxpr.eqns:
            if eqn.effects and all(e.shows for e in eqn.effects):
                continue
            values = [v if type(v) is Literal else env[v] for v in eqn.invars]
            at = (eqn.source or location) if located else location
            outs = self.apply(eqn, values, at)
            if eqn.primitive.name not in _MOVES and any(map(self.has_bad, outs)):
                raise _Located(eqn.primitive.name, at)
            env.update(zip(eqn.outvars, outs, strict=True))
        return [v if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def apply(self, eqn: Eqn, values: list[Any], location: Any) -> list[Any]:
        """Return the results of an equation, with a search of its sub-jaxprs."""
        prim = eqn.primitive
        self.location = location
        # The trace of a region over several devices evaluates sub-jaxprs itself, by ``run``.
        rule = prim.rules.get(run_jaxprs) if state.trace is None else None
        if rule is not None:
            outs = rule(self.run, values, **eqn.params)
            if outs is not None:
                n = len(eqn.outvars)
                return list(check_count(prim, run_jaxprs, rule, outs, n, "results"))
        elif expand in prim.rules and state.trace is None:
            inner = expanded(prim, [typeof(x) for x in values], eqn.params)
            assert inner is not None
            return self.run(inner, values)
        out = prim.bind(*values, **eqn.params)
        return list(out) if prim.multiple_results else [out]

    def has_bad(self, x: Any) -> bool:
        """Return True if ``is_bad`` holds for an element of an inexact array."""
        aval = typeof(x)
        if type(aval) is not ShapedArray or not dtypes.issubdtype(aval.dtype, np.inexact):
            return False
        if isinstance(x, core.Tracer):
            return any(bool(self.is_bad(np.asarray(v)).any()) for v in x._concrete_values())
        return bool(self.is_bad(np.asarray(x.scalar if type(x) is Literal else x)).any())
