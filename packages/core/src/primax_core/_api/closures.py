"""``closure_convert``: conversion of closures to explicit arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base import pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands
from .._engine.jit_cache import TracedCall, trace_function
from .._engine.results import as_result
from .._ir import dtypes
from .._ir.promotion import result_type
from .._trace.core import Tracer, call_on, typeof
from .._trace.staging import close_over
from ..lax.conversion import convert_element_type
from .arguments import check_callable, debug_info

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten


class ConvertedClosure:
    """A traced function with its closed-over values as an additional last argument, a list."""

    __slots__ = ("jaxpr", "in_tree", "out_tree")

    def __init__(self, jaxpr, in_tree, out_tree):
        self.jaxpr, self.in_tree, self.out_tree = jaxpr, in_tree, out_tree

    def __eq__(self, other):
        return type(other) is ConvertedClosure and self.jaxpr is other.jaxpr

    def __hash__(self):
        return hash(self.jaxpr)

    def _check_structure(self, tree):
        if tree != self.in_tree:
            raise TypeError(
                f"the converted function was called with arguments {tree}, but it was traced for "
                f"{self.in_tree}"
            )

    def checked(self, args: Sequence[Any]) -> Sequence[Any]:
        """Arguments of the shapes and dtypes of the trace; Python numbers are converted."""
        leaves, tree = _flatten((tuple(args), {}))
        self._check_structure(tree)
        avals = [v.aval for v in self.jaxpr.invars[len(self.jaxpr.invars) - len(leaves) :]]
        converted = [_of_type(i, x, aval) for i, (x, aval) in enumerate(zip(leaves, avals))]
        return _unflatten(tree, converted)[0]

    def __call__(self, *args_and_consts):
        *args, consts = args_and_consts
        leaves, tree = _flatten((tuple(args), {}))
        self._check_structure(tree)
        outs = call_on(state.trace, self.jaxpr, [*consts, *leaves])
        return _unflatten(self.out_tree, [as_result(o) for o in outs])


def convert_closure(fun: Callable[..., Any], *example_args) -> tuple[ConvertedClosure, list[Any]]:
    """A function without a closure, and the values that the original closes over."""
    leaves, in_tree = _flatten((example_args, {}))
    traced: TracedCall = trace_function(
        fun,
        in_tree,
        [typeof(x) for x in leaves],
        debug_info(fun, "closure_convert", example_args, {}),
    )
    if traced.consts:
        jaxpr, more = close_over(traced.jaxpr)
        consts = [*more, *traced.consts]
    else:
        jaxpr, consts = close_over(traced.jaxpr)
    return ConvertedClosure(jaxpr, in_tree, traced.out_tree), list(consts)


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """A function without tracers in its closure, and their values.

    A custom rule must not close over tracers that are differentiated: pass the values as
    arguments.

    Args:
      fun: a function of pytrees of arrays that may close over tracers.
      example_args: arguments of the same types as in later calls.

    Returns:
      ``(converted, values)``: ``converted(*args, *values)`` computes ``fun(*args)``. Values that
      are not differentiated stay in the closure.

    Raises:
      TypeError: if ``fun`` is not callable, or ``converted`` is called with arguments of another
        structure, shape or dtype.

    >>> converted, values = closure_convert(lambda x: x * 2.0, 1.0)
    >>> float(converted(3.0, *values)), len(values)
    (6.0, 0)
    >>> from primax_core import grad
    >>> def outer(y):
    ...     converted, values = closure_convert(lambda x: x * y, 1.0)
    ...     return converted(3.0, *values)
    >>> float(grad(outer)(2.0))
    3.0
    """
    check_callable(fun)
    closure, consts = convert_closure(fun, *example_args)
    moved = [i for i, c in enumerate(consts) if isinstance(c, Tracer) and _inexact(c)]
    values = [consts[i] for i in moved]
    fixed = dict(enumerate(consts))
    for i in moved:
        del fixed[i]

    def converted(*args_and_values):
        n = len(args_and_values) - len(moved)
        args, moved_values = args_and_values[:n], iter(args_and_values[n:])
        full = [fixed[i] if i in fixed else next(moved_values) for i in range(len(consts))]
        return closure(*closure.checked(args), full)

    return converted, values


def _of_type(i: int, x: Any, aval: Any) -> Any:
    actual = typeof(x)
    if actual.shape == aval.shape:
        if actual.dtype == aval.dtype:
            return x
        if actual.weak_type and result_type(x, aval.dtype) == aval.dtype:
            return convert_element_type(x, aval.dtype)
    raise TypeError(
        f"the converted function was called with an argument of type {actual} at leaf {i}, but "
        f"it was traced for {aval}: call closure_convert with example arguments of the type of the "
        "call, or convert the argument"
    )


def _inexact(x) -> bool:
    return dtypes.issubdtype(typeof(x).dtype, np.inexact)
