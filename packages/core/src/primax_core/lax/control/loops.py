"""Loops built from ``scan`` and ``while_loop``: ``fori_loop`` and ``map``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..._base import caches, pytree
from ..._base.config import state
from ..._base.operand_trees import flatten_operands
from ..._base.pytree import PyTree
from ..._base.source import api_boundary, name_of
from ..._ir.symbolic_dims import Dimension, as_steps, max_dim
from ..._trace.core import Tracer, typeof
from ..._trace.typing import ArrayLike
from ..._transform.batching import Axis, batch_with_aux, move_axis
from ..arithmetic import add
from ..comparison import lt
from ..conversion import convert_element_type
from ..elementwise import scalar_of
from ..joining import concatenate
from ..reshaping import reshape
from ..slicing import slice_in_dim
from .scan import scan
from .while_loop import while_loop

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

_T = TypeVar("_T")

# For each function, the bodies of the loops that call it.
_steps = caches.OfFunctions()


@api_boundary
def fori_loop(
    lower: ArrayLike | Dimension,
    upper: ArrayLike | Dimension,
    body_fun: Callable[[Any, _T], _T],
    init_val: _T,
    *,
    unroll: int | bool | None = None,
) -> _T:
    """``val = body_fun(i, val)`` for each ``i`` from ``lower`` to ``upper - 1``.

    With concrete bounds this is a :func:`scan`, which supports reverse mode. With traced bounds
    it is a :func:`while_loop`, which does not.

    Args:
      lower: the first index, an integer scalar.
      upper: the end, an integer scalar of the dtype of ``lower``. The loop has no steps if it is
        not greater.
      body_fun: a function of the index and the value; it must not change the types of the value.
      init_val: the first value, a pytree of arrays.
      unroll: as in :func:`scan`; only with concrete bounds.

    Returns:
      The last value.

    Raises:
      TypeError: if the bounds are not scalars of one type, or the body changes types.
      ValueError: if ``unroll`` is not ``None`` with traced bounds.

    Under ``vmap`` with mapped bounds the loop runs until the last example is finished.

    >>> float(fori_loop(0, 3, lambda i, x: x * 2.0, 1.0))
    8.0
    >>> int(fori_loop(1, 5, lambda i, total: total + i, 0))
    10
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    for name, bound in (("lower", lower), ("upper", upper)):
        if typeof(bound).shape:
            raise TypeError(
                f"{name} bound of fori_loop must be a scalar, got shape {typeof(bound).shape}"
            )
    lower, upper = _of_one_dtype(lower, upper)
    if not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
        start, stop = as_steps(lower), as_steps(upper)
        return _counted(start, stop, body_fun, init_val, 1 if unroll is None else unroll)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically known."
        )

    body = _step_of(body_fun, _while_step)
    return while_loop(_before_stop, body, (lower, upper, init_val))[2]


def _before_stop(loop_carry: Any) -> Any:
    i, stop, _ = loop_carry
    return lt(i, stop)


def _while_step(body_fun: Callable) -> Callable:
    def body(loop_carry):
        i, stop, val = loop_carry
        return add(i, scalar_of(i.dtype, 1)), stop, body_fun(i, val)

    return body


def _counted(start: int, stop: int, body_fun: Callable, init_val: Any, unroll: int | bool) -> Any:
    """A loop with static bounds; its index is a weakly typed integer."""
    if state.disable_jit and state.trace is None:
        val = init_val
        for i in range(start, stop):
            val = body_fun(i, val)
        return val
    length = max_dim(stop - start, 0)
    step = _step_of(body_fun, _scan_step)
    (_, out), _ = scan(step, (start, init_val), None, length=length, unroll=unroll)
    return out


def _scan_step(body_fun: Callable) -> Callable:
    def step(loop_carry, _):
        i, val = loop_carry
        return (add(i, 1), body_fun(i, val)), None

    return step


def _step_of(body_fun: Callable, make: Callable[[Callable], Callable]) -> Callable:
    """The body of the loop that computes a ``fori_loop``.

    It is the same object in each call, by which the loop finds its jaxpr again.
    """
    steps = _steps.of(body_fun)
    step: Callable | None = steps.get(make)
    return steps.setdefault(make, _named(make(body_fun), body_fun)) if step is None else step


def _of_one_dtype(lower: Any, upper: Any) -> tuple[Any, Any]:
    """The bounds; a weakly typed bound is converted to the dtype of the other."""
    a, b = typeof(lower), typeof(upper)
    if a.dtype == b.dtype:
        return lower, upper
    if a.weak_type == b.weak_type:
        raise TypeError(
            "lower and upper arguments to fori_loop must have equal types, got "
            f"{a.dtype.name} and {b.dtype.name}"
        )
    if a.weak_type:
        return convert_element_type(lower, b.dtype), upper
    return lower, convert_element_type(upper, a.dtype)


def _named(step: Callable, fun: Callable) -> Callable:
    step.__name__ = name_of(fun)
    step.__wrapped__ = fun  # type: ignore[attr-defined]
    return step


@api_boundary
def map(f: Callable[[Any], _T], xs: PyTree, *, batch_size: int | None = None) -> _T:
    """Apply a function to each slice of arrays along the leading axis, one after the other.

    Args:
      f: a function of one slice (a pytree like ``xs``).
      xs: a pytree of arrays with leading axes of equal size.
      batch_size: number of slices to which ``vmap(f)`` is applied at once; the remainder is
        processed last.

    Returns:
      A pytree with the results of ``f``, stacked along a new leading axis.

    Raises:
      ValueError: if the leading axes have different sizes or are missing.

    It is a :func:`scan` without a carry: it needs the memory of one slice at a time, where
    ``vmap`` computes all at once. It supports all derivatives.

    >>> import numpy as np
    >>> map(lambda x: x * x, np.arange(3.0)).tolist()
    [0.0, 1.0, 4.0]
    >>> map(lambda x: x * x, np.arange(5.0), batch_size=2).tolist()
    [0.0, 1.0, 4.0, 9.0, 16.0]
    """
    if batch_size:
        return _map_batches(f, xs, batch_size)
    _, ys = scan(lambda _, x: ((), f(x)), (), xs)
    return ys


def _map_batches(f: Callable, xs: Any, batch_size: int) -> Any:
    leaves, tree = _flatten(xs)
    n = typeof(leaves[0]).shape[0]
    whole = n // batch_size
    mapped = _batched(f)

    def part(start, stop):
        return [slice_in_dim(x, start, stop) for x in leaves]

    pieces = []
    if whole:
        slabs = [
            reshape(x, (whole, batch_size, *typeof(x).shape[1:]))
            for x in part(0, whole * batch_size)
        ]
        _, ys = scan(lambda _, x: ((), mapped(x)), (), _unflatten(tree, slabs))
        pieces.append(
            pytree.tree_map(lambda y: reshape(y, (whole * batch_size, *typeof(y).shape[2:])), ys)
        )
    if n % batch_size or not n:
        pieces.append(mapped(_unflatten(tree, part(whole * batch_size, n))))
    if len(pieces) == 1:
        return pieces[0]
    return pytree.tree_map(lambda a, b: concatenate([a, b], 0), *pieces)


def _batched(f: Callable) -> Callable:
    def mapped(x):
        leaves, tree = _flatten(x)
        size = typeof(leaves[0]).shape[0]

        def flat(*args):
            return _flatten(f(_unflatten(tree, args)))

        outs, dims, out_tree = batch_with_aux(flat, leaves, [0] * len(leaves), Axis(size))
        return _unflatten(out_tree, [move_axis(o, d, 0, size) for o, d in zip(outs, dims)])

    return mapped
