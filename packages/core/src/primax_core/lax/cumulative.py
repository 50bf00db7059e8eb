"""Cumulative sums, products, extrema and log-sum-exps along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from .._ir import dtypes
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._ir.symbolic_dims import is_static
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.jvp import jvp_of
from .._transform.zeros import Zero
from . import arithmetic as b
from .bitwise import bitwise_or, clz, shift_left
from .broadcasting import broadcast_in_dim
from .comparison import eq, lt, ne
from .control.while_loop import while_loop
from .conversion import convert
from .dynamic_slicing import dynamic_slice_p
from .elementwise import accepts, full_like
from .exponential import exp, log1p
from .joining import concatenate
from .magnitude import abs
from .permuting import rev
from .reducing import greatest, least, only
from .reshaping import reshape, squeeze
from .selection import select_n
from .shapes import without
from .slicing import pad, slice_in_dim

cumsum_p: Final = Primitive("cumsum")
cumprod_p: Final = Primitive("cumprod")
cummax_p: Final = Primitive("cummax")
cummin_p: Final = Primitive("cummin")
cumlogsumexp_p: Final = Primitive("cumlogsumexp")


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative sum along an axis: element ``i`` is the sum of the elements 0 to ``i``.

    Floats narrower than 32 bits are summed in ``float32``.

    Args:
      operand: an array of integer, floating or complex dtype.
      axis: nonnegative axis.
      reverse: sum from the end: element ``i`` is the sum of the elements from ``i`` on.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      ValueError: if the axis is negative or does not exist.
      TypeError: if the operand is boolean or not an array.

    The function is linear; its transpose is the cumulative sum in the other direction. Under
    ``vmap`` the mapped axis is left out of the operation, which runs on the whole batch.

    >>> cumsum(np.array([1, 2, 3])).tolist()
    [1, 3, 6]
    >>> cumsum(np.array([1, 2, 3]), reverse=True).tolist()
    [6, 5, 3]
    """
    return _bind(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative product along an axis: element ``i`` is the product of the elements 0 to ``i``.

    Args:
      operand: an array of integer, floating or complex dtype.
      axis: nonnegative axis.
      reverse: multiply from the end.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      ValueError: if the axis is negative or does not exist.
      TypeError: if the operand is boolean or not an array.

    It is differentiable to any order, also if elements are zero. Under ``vmap`` the mapped axis
    is left out of the operation, which runs on the whole batch.

    >>> cumprod(np.array([1, 2, 3])).tolist()
    [1, 2, 6]
    >>> cumprod(np.array([1, 2, 3]), reverse=True).tolist()
    [6, 6, 3]
    """
    return _bind(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative maximum along an axis: element ``i`` is the maximum of the elements 0 to ``i``.

    NaN propagates. Complex numbers are ordered by their real, then by their imaginary part.

    Args:
      operand: an array of integer, floating or complex dtype.
      axis: nonnegative axis.
      reverse: begin at the end.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      ValueError: if the axis is negative or does not exist.
      TypeError: if the operand is boolean or not an array.

    Where the maximum so far equals the next element, both share the derivative equally. Under
    ``vmap`` the mapped axis is left out of the operation, which runs on the whole batch.

    >>> cummax(np.array([1, 3, 2])).tolist()
    [1, 3, 3]
    >>> cummax(np.array([1, 3, 2]), reverse=True).tolist()
    [3, 3, 2]
    """
    return _bind(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative minimum along an axis: element ``i`` is the minimum of the elements 0 to ``i``.

    NaN propagates. Complex numbers are ordered by their real, then by their imaginary part.

    Args:
      operand: an array of integer, floating or complex dtype.
      axis: nonnegative axis.
      reverse: begin at the end.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      ValueError: if the axis is negative or does not exist.
      TypeError: if the operand is boolean or not an array.

    Where the minimum so far equals the next element, both share the derivative equally. Under
    ``vmap`` the mapped axis is left out of the operation, which runs on the whole batch.

    >>> cummin(np.array([3, 1, 2])).tolist()
    [3, 1, 1]
    >>> cummin(np.array([3, 1, 2]), reverse=True).tolist()
    [1, 1, 2]
    """
    return _bind(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative log-sum-exp along an axis, computed without overflow.

    Element ``i`` is ``log(exp(x[0]) + ... + exp(x[i]))``.

    Args:
      operand: an array of floating or complex dtype.
      axis: nonnegative axis.
      reverse: begin at the end.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      ValueError: if the axis is negative or does not exist.
      TypeError: if the operand has an integer or boolean dtype.

    It is differentiable to any order. Under ``vmap`` the mapped axis is left out of the
    operation, which runs on the whole batch.

    >>> x = np.array([0.0, 0.0, 1000.0], np.float32)
    >>> print(np.asarray(cumlogsumexp(x)).round(4))
    [0.000e+00 6.931e-01 1.000e+03]
    """
    return _bind(cumlogsumexp_p, operand, axis, reverse)


def _bind(prim: Primitive, operand: Any, axis: int, reverse: bool) -> Array:
    shape = typeof(operand).shape
    if axis < 0:
        raise ValueError(f"XLA operations do not allow negative axes: {prim.name} got axis={axis}")
    if axis >= len(shape):
        raise ValueError(f"axis {axis} is out of bounds for array of shape {shape}")
    return prim.bind(operand, axis=int(axis), reverse=bool(reverse))


# The algorithm: combine neighbours, scan the pairs, fill in the elements between them (Blelloch,
# "Prefix sums and their applications", 1990).

Combine = Callable[[list, list], list]


def prefixes(combine: Combine, xs: list[Any], axis: int) -> list[Any]:
    """Prefix scan of an associative function of lists of arrays along an axis."""
    n = typeof(xs[0]).shape[axis]
    if n < 2:
        return xs

    def every(x, start, limit, step=2):
        return slice_in_dim(x, start, limit, step, axis)

    even = n - n % 2
    pairs = combine([every(x, 0, even) for x in xs], [every(x, 1, even) for x in xs])
    odd = prefixes(combine, pairs, axis)
    if n > 2:
        before = odd if n % 2 else [every(x, 0, n // 2 - 1, 1) for x in odd]
        between = combine(before, [every(x, 2, n) for x in xs])
        firsts = [concatenate([every(x, 0, 1, 1), y], axis) for x, y in zip(xs, between)]
    else:
        firsts = [every(x, 0, 1, 1) for x in xs]
    return [_interleaved(x, y, axis, n) for x, y in zip(firsts, odd)]


def _interleaved(x: Any, y: Any, axis: int, n: int) -> Array:
    """Elements of two arrays in alternation, ``n`` in total."""
    aval = typeof(x)
    zero = np.zeros((), aval.dtype)[()]

    def spread(z, low, high):
        config = [(0, 0, 0)] * aval.ndim
        config[axis] = (low, high, 1)
        return pad(z, zero, config)

    join = bitwise_or if aval.dtype == np.bool_ else b.add
    return join(spread(x, 0, 1 - n % 2), spread(y, 1, n % 2))


def _scanned(combine: Combine, xs: list, axis: int, reverse: bool) -> list:
    if reverse:
        xs = [rev(x, (axis,)) for x in xs]
    outs = prefixes(combine, xs, axis)
    return [rev(x, (axis,)) for x in outs] if reverse else outs


def _with_tangents(op: Callable) -> Combine:
    """The JVP of an operation, as a function of lists ``[value, tangent]``."""

    def combine(x, y):
        outs, tangents = jvp_of(lambda p, q: [op(p, q)], [x[0], y[0]], [x[1], y[1]])
        return [*outs, *tangents]

    return combine


# Compiled code is faster with few large steps: scan blocks, then scan the blocks' results.


class _Blocks(NamedTuple):
    """Blocked algorithm for a compiled cumulative operation.

    Attributes:
      size: number of elements in a block.
      within: ``(op, neutral, x, axis, reverse)``: prefix scan along the axis of a block.
      neutral: function of a dtype that returns the neutral element of the operation.
    """

    size: int
    within: Callable
    neutral: Callable[[Any], Any]

    def run(self, op: Callable, x: Any, axis: int, reverse: bool) -> Array:
        """Prefix scan of an associative function of two arrays."""
        shape, dtype = typeof(x).shape, typeof(x).dtype
        neutral = np.asarray(self.neutral(dtype), dtype)[()]
        n, size = shape[axis], self.size
        if not is_static((n,)):
            return _by_doubling_loop(op, neutral, x, axis, reverse)
        if n <= max(size, _ONE_WINDOW):
            return self.within(op, neutral, x, axis, reverse)
        blocks = -(-n // size)
        x = _shifted(x, axis, 0, blocks * size - n, neutral)
        padded = typeof(x).shape
        x = reshape(x, (*shape[:axis], blocks, size, *shape[axis + 1 :]))
        inner = self.within(op, neutral, x, axis + 1, reverse)
        last = 0 if reverse else size - 1
        whole = squeeze(slice_in_dim(inner, last, last + 1, 1, axis + 1), (axis + 1,))
        others = self.run(op, whole, axis, reverse)
        others = _shifted(others, axis, *((-1, 1) if reverse else (1, -1)), neutral)
        every = typeof(inner).shape
        others = broadcast_in_dim(others, every, without(range(len(every)), (axis + 1,)))
        return slice_in_dim(reshape(op(others, inner), padded), 0, n, 1, axis)


def _shifted(x: Any, axis: int, low: int, high: int, fill: Any) -> Array:
    """The array with elements added or removed before and after an axis."""
    config = [(0, 0, 0)] * typeof(x).ndim
    config[axis] = (low, high, 0)
    return pad(x, fill, config)


def _by_window(op: Callable, neutral: Any, x: Any, axis: int, reverse: bool) -> Array:
    """Prefix scan by windows that end at each element."""
    from .windows import reduce_window  # loaded with the first window

    shape = typeof(x).shape
    if not shape[axis]:
        return x
    sizes, pads = [1] * len(shape), [(0, 0)] * len(shape)
    sizes[axis], rest = shape[axis], shape[axis] - 1
    pads[axis] = (0, rest) if reverse else (rest, 0)
    return reduce_window(x, neutral, op, sizes, None, pads)


def _by_doubling(op: Callable, neutral: Any, x: Any, axis: int, reverse: bool) -> Array:
    """Prefix scan by doubling the reach in each step: fewer operations than windows."""
    n, reach = typeof(x).shape[axis], 1
    while reach < n:
        x = op(_shifted(x, axis, *((-reach, reach) if reverse else (reach, -reach)), neutral), x)
        reach *= 2
    return x


def _by_doubling_loop(op: Callable, neutral: Any, x: Any, axis: int, reverse: bool) -> Array:
    """:func:`_by_doubling` along an axis of symbolic size, with an unknown number of steps."""
    shape = typeof(x).shape
    end = convert(shape[axis].as_value(), np.dtype(np.int32))
    zero, one = np.int32(0), np.int32(1)
    steps = b.sub(np.int32(32), clz(b.max(b.sub(end, one), zero)))
    fill = broadcast_in_dim(neutral, shape, ())

    def step(state):
        # The loop counts steps: jaxlib 0.10 aborts the process for a loop that doubles its counter.
        k, x = state
        reach = shift_left(one, k)
        parts = [x, fill] if reverse else [fill, x]
        start = reach if reverse else b.sub(end, reach)
        starts = [start if i == axis else zero for i in range(len(shape))]
        moved = dynamic_slice_p.bind(concatenate(parts, axis), *starts, slice_sizes=shape)
        return b.add(k, one), op(moved, x)

    return while_loop(lambda state: lt(state[0], steps), step, (zero, x))[1]


_ONE_WINDOW: Final = 16
"""Axes of at most this size are one block: two levels compile three times as slowly."""

_SMALL: Final = 4096


def _by_size(op: Callable, neutral: Any, x: Any, axis: int, reverse: bool) -> Array:
    """Windows for small arrays (compile faster), doubling for large ones (runs faster)."""
    within = _by_window if typeof(x).size <= _SMALL else _by_doubling
    return within(op, neutral, x, axis, reverse)


def _cumulative(
    prim: Primitive,
    kinds: tuple[str, ...],
    op: Callable,
    linearized: Combine | None,
    widen: bool,
    blocks: _Blocks,
) -> None:
    """Define the type, lowering, derivative and batching of a cumulative operation.

    Args:
      op: associative function of two arrays.
      linearized: the same on lists ``[value, tangent]``.
      widen: combine floats narrower than 32 bits in ``float32``.
      blocks: the compiled algorithm.
    """
    check = only(*kinds)

    @prim.rule(abstract)
    def _abstract(x, *, axis, reverse):
        check(prim.name, x.dtype)
        return x

    @prim.rule(lower)
    def _lower(ctx, x, *, axis, reverse):
        dtype = ctx.in_avals[0].dtype

        def run(x):
            narrow = widen and accepts(dtype, ("float",)) and dtypes.itemsize_bits(dtype) < 32
            y = convert(x, np.dtype(np.float32)) if narrow else x
            out = blocks.run(op, y, axis, reverse)
            return convert(out, dtype) if narrow else out

        return ctx.call(run, x)

    if linearized is not None:

        @prim.rule(jvp)
        def _jvp(primals, tangents, *, axis, reverse):
            if type(tangents[0]) is Zero:
                out = prim.bind(*primals, axis=axis, reverse=reverse)
                return out, Zero.like(out)
            out, tangent = _scanned(linearized, [*primals, *tangents], axis, reverse)
            return out, tangent

    @prim.rule(batch)
    def _batch(mapped, args, dims, *, axis, reverse):
        (dim,) = dims
        return prim.bind(args[0], axis=axis + (axis >= dim), reverse=reverse), dim


def _log_add_exp(x: Any, y: Any) -> Array:
    """``log(exp(x) + exp(y))``."""
    if accepts(typeof(x).dtype, ("complex",)):
        return _complex_log_add_exp(x, y)
    difference = b.sub(x, y)
    plain = b.add(b.max(x, y), log1p(exp(b.neg(abs(difference)))))
    return select_n(ne(difference, difference), plain, b.add(x, y))


def _complex_log_add_exp(x: Any, y: Any) -> Array:
    # Complex numbers are ordered by the real part first, so the exponential is bounded.
    greater, lesser = b.max(x, y), b.min(x, y)
    infinite = eq(lesser, full_like(lesser, -np.inf))
    change = log1p(exp(b.sub(lesser, greater)))
    return select_n(infinite, b.add(greater, change), greater)


def _finite(x: Any) -> Any:
    """Replace infinity by zero, so that differences of overflowed results are not NaN."""
    return select_n(eq(x, full_like(x, np.inf)), x, full_like(x, 0))


def _log_add_exp_with_tangents(x: Sequence, y: Sequence) -> list:
    out = _log_add_exp(x[0], y[0])
    parts = [b.mul(t, exp(b.sub(_finite(v), _finite(out)))) for v, t in (x, y)]
    return [out, b.add(*parts)]


# Blocks of 16 compile like a window of the whole axis and run faster. Blocks of 8 run faster still
# for operations that take longer than a comparison.
_SUMS: Final = _Blocks(8, _by_window, lambda dtype: 0)
_PRODUCTS: Final = _Blocks(8, _by_window, lambda dtype: 1)
_MAXIMA: Final = _Blocks(16, _by_size, least)
_MINIMA: Final = _Blocks(16, _by_size, greatest)
_LOGS: Final = _Blocks(8, _by_size, least)

_cumulative(cumsum_p, ("number",), b.add, None, True, _SUMS)
_cumulative(cumprod_p, ("number",), b.mul, _with_tangents(b.mul), True, _PRODUCTS)
_cumulative(cummax_p, ("number",), b.max, _with_tangents(b.max), False, _MAXIMA)
_cumulative(cummin_p, ("number",), b.min, _with_tangents(b.min), False, _MINIMA)
_cumulative(cumlogsumexp_p, ("inexact",), _log_add_exp, _log_add_exp_with_tangents, True, _LOGS)


@cumsum_p.rule(jvp)
def _jvp(primals, tangents, *, axis, reverse):
    out = cumsum_p.bind(*primals, axis=axis, reverse=reverse)
    if type(tangents[0]) is Zero:
        return out, Zero.like(out)
    return out, cumsum_p.bind(*tangents, axis=axis, reverse=reverse)


@cumsum_p.rule(transpose)
def _transpose(ct, x, *, axis, reverse):
    return [cumsum_p.bind(ct, axis=axis, reverse=not reverse)]


def _cumulative_samples(prim: Primitive, complex_too: bool) -> None:
    @prim.rule(samples)
    def _samples():
        yield Sample(f32(5), axis=0, reverse=False)
        yield Sample(f32(3, 4), axis=1, reverse=True)
        yield Sample(f32(0, 3), axis=0, reverse=False)
        yield Sample(bf16(2, 0), axis=0, reverse=True)
        yield Sample(bf16(4), axis=0, reverse=False).set(tolerance=0.05)
        if complex_too:
            yield Sample(c64(4), axis=0, reverse=False)


for _prim in (cumsum_p, cumprod_p, cumlogsumexp_p):
    _cumulative_samples(_prim, True)
for _prim in (cummax_p, cummin_p):
    _cumulative_samples(_prim, False)
