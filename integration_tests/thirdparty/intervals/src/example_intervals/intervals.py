"""Intervals, the rule kind that computes with them, and the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from primax_core import Array, lax
from primax_core.extend import (
    Eqn,
    Jaxpr,
    MissingRule,
    Primitive,
    RuleKind,
    ShapedArray,
    dtypes,
    expanded,
    interpret,
    register_internal_path,
    stage,
    typeof,
)
from primax_core.tree_util import tree_flatten, tree_unflatten

register_internal_path(__file__)


class Interval(NamedTuple):
    """All numbers from ``low`` to ``high``, elementwise; for booleans, ``False < True``."""

    low: Any
    high: Any

    @property
    def aval(self) -> ShapedArray:
        """The type of the bounds."""
        return typeof(self.low).strip_weak_type()


interval: RuleKind[Callable[..., Any]] = RuleKind(
    "interval", "(*intervals, **params) -> interval, or a list of them"
)


def bounds(fun: Callable) -> Callable:
    """Create a function from intervals to intervals that contain every result of ``fun``.

    ``fun`` takes and returns pytrees of arrays. The new function accepts an :class:`Interval`
    instead of any array; other arrays are exact values. It consists of lax operations, so it can be
    jitted, mapped and differentiated, and so can ``fun``.
    """

    def bounded(*args):
        leaves, tree = tree_flatten(args, is_leaf=lambda x: isinstance(x, Interval))
        values = [x if isinstance(x, Interval) else point(x) for x in leaves]
        out_tree = []

        def flat(*xs):
            outs, structure = tree_flatten(fun(*tree_unflatten(tree, xs)))
            out_tree.append(structure)
            return outs

        jaxpr = stage(flat, [x.aval for x in values], getattr(fun, "__name__", "fun"))
        return tree_unflatten(out_tree[0], evaluate(jaxpr, values))

    return bounded


def evaluate(jaxpr: Jaxpr, values: Sequence[Interval]) -> list[Interval]:
    """Evaluate a jaxpr on intervals."""
    return interpret(jaxpr, values, _step, point)


def _step(eqn: Eqn, values: list[Interval]) -> list[Interval]:
    rule = eqn.primitive.require(interval, "interval arithmetic")
    out = rule(*values, **eqn.params)
    return list(out) if eqn.primitive.multiple_results else [out]


def point(x: Any) -> Interval:
    """Create the interval of one number."""
    return Interval(x, x)


def hull(x: Interval, y: Interval) -> Interval:
    """Return the smallest interval that contains two intervals."""
    if x.aval.dtype == np.bool_:
        return Interval(lax.bitwise_and(x.low, y.low), lax.bitwise_or(x.high, y.high))
    return Interval(lax.min(x.low, y.low), lax.max(x.high, y.high))


def everything(aval: ShapedArray) -> Interval:
    """Return the interval of all numbers of a type."""
    if aval.dtype == np.bool_:
        limits: tuple[Any, Any] = (False, True)
    elif dtypes.issubdtype(aval.dtype, np.floating):
        limits = (-np.inf, np.inf)
    elif dtypes.issubdtype(aval.dtype, np.integer):
        info = np.iinfo(aval.dtype)
        limits = (info.min, info.max)
    else:
        raise TypeError(f"there are no intervals of {aval.dtype.name}: it has no order")
    return Interval(*(lax.full(aval.shape, v, aval.dtype) for v in limits))


def is_point(x: Interval) -> Array:
    """Return True if an interval is a single number everywhere."""
    same = lax.eq(x.low, x.high)
    return lax.reduce_and(same, tuple(range(typeof(same).ndim)))


@interval.falls_back
def _(prim: Primitive) -> Callable:
    """Fallback for primitives without a rule, also those of other packages.

    If the primitive has an expansion, use it. Otherwise, elements with exact operands are computed,
    and all other elements may be any number.
    """

    def rule(*values: Interval, **params: Any) -> Any:
        jaxpr = expanded(prim, [x.aval for x in values], params)
        if jaxpr is not None:
            outs = evaluate(jaxpr, values)
            return outs if prim.multiple_results else outs[0]
        return _unknown(prim, values, params)

    return rule


def _unknown(prim: Primitive, values: Sequence[Interval], params: dict[str, Any]) -> Any:
    outs = prim.bind(*(x.low for x in values), **params)
    known: Any = True
    for x in values:
        known = lax.bitwise_and(known, is_point(x))
    choose = partial(_known_or_anything, known)
    return [choose(o) for o in outs] if prim.multiple_results else choose(outs)


def _known_or_anything(known: Any, out: Any) -> Interval:
    aval = typeof(out).strip_weak_type()
    low, high = everything(aval)
    out = lax.convert_element_type(out, aval.dtype)
    return Interval(lax.select_n(known, low, out), lax.select_n(known, high, out))


def undefined(reason: str) -> MissingRule:
    """Return the error for an operation without interval semantics."""
    return MissingRule(f"interval arithmetic: {reason}")
