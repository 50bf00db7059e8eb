"""Reductions by any associative function, and products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from .._base import caches, pytree
from .._base.config import state
from .._base.pytree import PyTree, PyTreeDef
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.element_types import DTypeLike
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive, abstract, batch, jvp, lower
from .._ir.samples import Sample, bf16, c64, f32, i32, samples
from .._runtime.sharding import ShardingLike
from .._trace.array import Array
from .._trace.core import Tracer, typeof
from .._trace.staging import eval_jaxpr, has_tracers, stage
from .._trace.typing import ArrayLike
from .._transform.batching import Axis, batch_of, move_axis
from .._transform.jvp import jvp_of
from .._transform.zeros import Zero
from . import arithmetic as b
from .bitwise import bitwise_and, bitwise_or, bitwise_xor
from .broadcasting import broadcast_in_dim
from .elementwise import accepts
from .joining import concatenate
from .out_sharding import out_sharding_of
from .permuting import transpose
from .reducing import (
    axis_reducer,
    emit_reduce,
    greatest,
    least,
    only,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_sum,
    reduce_xor,
    reduced_shape,
)
from .reshaping import reshape, squeeze
from .scalar_jaxprs import check_for_elements
from .shapes import int_tuple, past, without
from .slicing import slice_in_dim

reduce_prod_p: Final = Primitive("reduce_prod")


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Product of the elements along some axes.

    Floats narrower than 32 bits are multiplied in ``float32`` and rounded once. The product over
    an empty axis is 1.

    Args:
      operand: an array of integer, floating or complex dtype.
      axes: nonnegative axes to reduce.

    Returns:
      An array of the operand's dtype, without the reduced axes.

    Raises:
      ValueError: if an axis is negative, does not exist or appears twice.
      TypeError: if the operand is boolean or not an array.

    The derivative with respect to an element is the product of the other elements, also if some
    elements are zero. Under ``vmap`` the mapped axis is left out of the operation, which runs on
    the whole batch.

    >>> int(reduce_prod(np.array([2, 3]), (0,)))
    6
    >>> from primax_core import grad
    >>> grad(lambda x: reduce_prod(x, (0,)))(np.array([2.0, 0.0, 3.0], np.float32)).tolist()
    [0.0, 6.0, 0.0]
    """
    return reduce_prod_p.bind(operand, axes=int_tuple("reduce_prod", "axes", axes))


axis_reducer(reduce_prod_p, only("number"), b.mul, lambda dtype: 1, widen=True)


def by_pairs(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any]) -> list[Any]:
    """Reduction along the nonempty first axis by a tree of pairwise combinations."""
    n = typeof(xs[0]).shape[0]
    while n > 1:
        even = n - n % 2
        left = [slice_in_dim(x, 0, even, 2) for x in xs]
        right = [slice_in_dim(x, 1, even, 2) for x in xs]
        rest = [slice_in_dim(x, even, n) for x in xs]
        xs = combine(left, right)
        if n % 2:
            xs = [concatenate([x, r], 0) for x, r in zip(xs, rest)]
        n = n // 2 + n % 2
    return [squeeze(x, (0,)) for x in xs]


def _rows(x: Any, axes: tuple[int, ...]) -> Array:
    """The array with some axes merged into a new first axis."""
    shape = typeof(x).shape
    others = without(range(len(shape)), axes)
    n = math.prod([shape[a] for a in axes])
    return reshape(transpose(x, (*axes, *others)), (n, *[shape[k] for k in others]))


@reduce_prod_p.rule(jvp)
def _reduce_prod_jvp(primals, tangents, *, axes):
    (x,), (t,) = primals, tangents
    out = reduce_prod_p.bind(x, axes=axes)
    if type(t) is Zero or not typeof(x).size:
        return out, Zero.like(out)

    def tree(x):
        return by_pairs(lambda p, q: [b.mul(p[0], q[0])], [_rows(x, axes)])

    return out, jvp_of(tree, [x], [t])[1][0]


# Any function

reduce_p: Final = Primitive(
    "reduce",
    multiple_results=True,
    cache_on=lambda params: params["jaxpr"].cache,
    applies_jaxprs=False,
)

_MONOIDS: Final[dict[Callable, tuple[Callable, Callable]]] = {
    b.add: (reduce_sum, lambda dtype: 0 if dtype != np.bool_ else None),
    b.mul: (reduce_prod, lambda dtype: 1 if dtype != np.bool_ else None),
    b.max: (reduce_max, least),
    b.min: (reduce_min, greatest),
    bitwise_and: (reduce_and, lambda dtype: -1 if dtype != np.bool_ else True),
    bitwise_or: (reduce_or, lambda dtype: 0),
    bitwise_xor: (reduce_xor, lambda dtype: 0),
}


def reduce(
    operands: PyTree,
    init_values: PyTree,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: ShardingLike | None = None,
) -> Any:
    """Reduction along some axes by an associative function.

    Args:
      operands: an array, or a pytree of arrays of one shape.
      init_values: scalars of the same structure and dtypes: the neutral elements of the function,
        which may be combined any number of times.
      computation: function of two scalars (or pytrees of scalars) that returns their combination.
      dimensions: nonnegative axes to reduce.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``.

    Returns:
      A pytree of the structure of ``operands``: arrays without the reduced axes.

    The derivative requires a function that is also commutative. A function of this library with
    its neutral element becomes the specialized reduction, such as :func:`reduce_sum`.

    Raises:
      ValueError: if structures, shapes or axes are incompatible, or an initial value is not a
        scalar.
      TypeError: if the function changes dtypes, or closes over tracers.

    >>> import primax_core.lax.arithmetic as ops
    >>> reduce(np.array([1, 2, 3]), 0, ops.add, (0,)).tolist()
    6
    """
    leaves, tree = pytree.tree_flatten(operands)
    inits, init_tree = pytree.tree_flatten(init_values)
    if tree != init_tree:
        raise ValueError(
            f"Operands must have the same tree structure as init_values: {tree} vs. {init_tree}"
        )
    if out_sharding is not None:
        sharding = out_sharding_of("reduce", out_sharding)
        return pytree.tree_map(
            partial(sharding._applied, lambda x: x),
            reduce(operands, init_values, computation, dimensions),
        )
    axes = int_tuple("reduce", "dimensions", dimensions)
    avals = [typeof(x) for x in leaves]
    inits = [as_init(i, a.dtype) for i, a in zip(inits, avals)]
    if len(leaves) == 1:
        known = _MONOIDS.get(computation) if is_hashable(computation) else None
        if known is not None and is_number(inits[0], known[1](avals[0].dtype)):
            return tree.unflatten([known[0](leaves[0], axes)])
    jaxpr = reducer_jaxpr("reduce", computation, tree, avals)
    outs = reduce_p.bind(*leaves, *inits, computation=computation, jaxpr=jaxpr, dimensions=axes)
    return tree.unflatten(outs)


def is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def is_number(value: Any, number: Any) -> bool:
    """Return True if ``value`` is a concrete scalar equal to ``number``."""
    if isinstance(value, Tracer) or number is None or np.shape(value) != ():
        return False
    return bool(np.asarray(value) == number)


def as_init(value: ArrayLike, dtype: DTypeLike) -> Any:
    """An initial value; Python numbers are converted, infinities to the extreme integers."""
    if not isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, float) and accepts(dtype, ("integer",)) and math.isinf(value):
        info = dtypes.iinfo(dtype)
        value = info.max if value > 0 else info.min
    return np.asarray(value).astype(dtype)[()]


_jaxprs: dict[tuple, Jaxpr] = caches.bounded_cache(512)


def reducer_jaxpr(
    name: str, computation: Callable[..., Any], tree: PyTreeDef, avals: Sequence[Any]
) -> Jaxpr:
    """The cached jaxpr of a function that combines two pytrees of scalars."""
    scalars = [ShapedArray((), a.dtype) for a in avals]
    key = (state.trace_key, computation, tree, *scalars)
    cached = _jaxprs.get(key) if is_hashable(computation) else None
    if cached is not None:
        return cached

    def flat(*xs):
        half = len(xs) // 2
        out = computation(tree.unflatten(xs[:half]), tree.unflatten(xs[half:]))
        outs, out_tree = pytree.tree_flatten(out)
        if out_tree != tree:
            raise ValueError(
                f"the function given to {name} must return the structure of its arguments: got "
                f"{out_tree}, expected {tree}"
            )
        return outs

    jaxpr = stage(flat, [*scalars, *scalars])
    check_for_elements(name, jaxpr)
    got = [v.aval.strip_weak_type() for v in jaxpr.outvars]
    if got != scalars:
        raise TypeError(
            f"the function given to {name} must return scalars of the operands' dtypes: got "
            f"{[str(a) for a in got]}, expected {[str(a) for a in scalars]}"
        )
    if has_tracers(jaxpr.consts):
        raise TypeError(
            f"the function given to {name} closes over tracers; use constants, or pass the values "
            "as operands"
        )
    if is_hashable(computation):
        _jaxprs[key] = jaxpr
    return jaxpr


@reduce_p.rule(abstract)
def _reduce_abstract(*args, computation, jaxpr, dimensions):
    xs, inits = args[: len(args) // 2], args[len(args) // 2 :]
    if any(i.shape for i in inits):
        raise ValueError(f"reduce found non-scalar initial value: {[i.shape for i in inits]}")
    if any(x.shape != xs[0].shape for x in xs):
        raise ValueError(
            f"reduce operands must have equal shapes, got {', '.join(str(x.shape) for x in xs)}"
        )
    for x, i in zip(xs, inits):
        if x.dtype != i.dtype:
            raise TypeError(
                "reduce operands and initial values must have the same dtypes, got "
                f"{x.dtype.name} and {i.dtype.name}."
            )
    shape = reduced_shape(xs[0], dimensions)
    return [ShapedArray(shape, x.dtype, x.weak_type and i.weak_type) for x, i in zip(xs, inits)]


def region(ctx: Any, jaxpr: Jaxpr) -> Callable[[list[Any], list[Any]], list[Any]]:
    """The body of an MLIR reduction, from a jaxpr."""

    def body(acc, element):
        avals = [v.aval for v in jaxpr.invars]
        return ctx.call(lambda *xs: eval_jaxpr(jaxpr, xs), *acc, *element, in_avals=avals)

    return body


@reduce_p.rule(lower)
def _reduce_lower(ctx, *args, jaxpr, dimensions, **_):
    half = len(args) // 2
    return emit_reduce(args[:half], args[half:], dimensions, region(ctx, jaxpr))


def elementwise(jaxpr: Jaxpr) -> Callable[[list[Any], list[Any]], list[Any]]:
    """A jaxpr of scalars as a function of lists of arrays of one shape."""

    def combine(xs, ys):
        shape = typeof(xs[0]).shape
        n = math.prod(shape)
        flat = [reshape(z, (n,)) for z in (*xs, *ys)]
        outs, dims = batch_of(lambda *zs: eval_jaxpr(jaxpr, zs), flat, [0] * len(flat), Axis(n))
        return [reshape(move_axis(o, d, 0, n), shape) for o, d in zip(outs, dims)]

    return combine


def _expanded(args: Sequence, jaxpr: Jaxpr, dimensions: tuple[int, ...]) -> list:
    """The reduction as a composition of operations with derivative and batch rules."""
    half = len(args) // 2
    if not dimensions:  # without axes XLA returns the operands
        return list(args[:half])
    rows = [_rows(x, dimensions) for x in args[:half]]
    shape = typeof(rows[0]).shape[1:]
    inits = [broadcast_in_dim(i, shape, ()) for i in args[half:]]
    if not typeof(rows[0]).shape[0]:
        return inits
    combine = elementwise(jaxpr)
    return combine(inits, by_pairs(combine, rows))


@reduce_p.rule(jvp)
def _reduce_jvp(primals, tangents, *, jaxpr, dimensions, **params):
    outs = reduce_p.bind(*primals, jaxpr=jaxpr, dimensions=dimensions, **params)
    in_tangents = [None if type(t) is Zero else t for t in tangents]
    out_tangents = jvp_of(lambda *a: _expanded(a, jaxpr, dimensions), primals, in_tangents)[1]
    return outs, [Zero.like(o) if t is None else t for o, t in zip(outs, out_tangents)]


@reduce_p.rule(batch)
def _reduce_batch(axis, args, dims, *, jaxpr, dimensions, **params):
    half = len(args) // 2
    if all(d is None for d in dims[half:]):
        at = next(d for d in dims if d is not None)
        moved = [move_axis(x, d, at, axis.size) for x, d in zip(args[:half], dims)]
        outs = reduce_p.bind(
            *moved, *args[half:], jaxpr=jaxpr, dimensions=past(at, dimensions), **params
        )
        return outs, [at - sum(d < at for d in dimensions)] * half
    outs, out_dims = batch_of(lambda *a: _expanded(a, jaxpr, dimensions), args, dims, axis)
    return outs, out_dims


@reduce_prod_p.rule(samples)
def _reduce_prod_samples():
    yield Sample(f32(4), axes=(0,))
    yield Sample(f32(2, 3, 2), axes=(0, 2))
    yield Sample(c64(3), axes=(0,))
    yield Sample(bf16(0, 2), axes=(0,))


@reduce_p.rule(samples)
def _reduce_samples():
    def sums(x, y):
        return reduce((x, y), (np.float32(0), np.float32(1)), _sum_and_product, (0,))

    yield Sample(f32(3, 2), f32(3, 2)).set(
        call=sums, without=dict.fromkeys(_DIFFERENTIATED, "initial values are of float32")
    )
    yield Sample(i32(4), i32()).set(call=lambda x, y: reduce(x, y, lambda a, b: a + b, (0,)))


def _sum_and_product(x, y):
    return x[0] + y[0], x[1] * y[1]


_DIFFERENTIATED: Final = ("jvp", "transpose", "second order", "symbolic zeros", "purity")
