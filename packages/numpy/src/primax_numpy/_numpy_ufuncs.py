"""The ``ufunc`` objects: arithmetic, extrema, bitwise and logical operations, log-sum-exp."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof

from . import _reductions
from ._arithmetic import operate
from ._checks import axes_of, dtype_argument
from ._functions import compiled, elementwise
from ._logic import truth
from ._promotion import as_inexact, broadcast_together, inexact_pair, is_complex, pair, repeated
from ._ufuncs import ufunc

_Method = Callable[..., Any]


def _ufunc(nin: int, identity: Any = None, **methods: Any) -> Callable[[_Method], ufunc]:
    """Decorator that turns a function of arrays into a ufunc."""
    return lambda fun: ufunc(fun, nin, 1, identity=identity, call=fun, **methods)


# Shared ufunc methods


# Sums and products of booleans are their logical disjunctions and conjunctions.
_OF_BOOLEANS: Final = {"add": "max", "multiply": "min"}


def _updating(name: str) -> _Method:
    def update(x: Any, indices: Any, b: Any) -> Array:
        if x.dtype == np.bool_ and typeof(b).dtype == np.bool_ and name in _OF_BOOLEANS:
            return getattr(x.at[indices], _OF_BOOLEANS[name])(b)
        if isinstance(indices, Array):
            return _updated(x, indices, b, name=name)
        return getattr(x.at[indices], name)(b)

    return update


@compiled("name")
def _updated(x, indices, b, *, name):
    return getattr(x.at[indices], name)(b)


@compiled("op", "axis", "dtype")
def _running(x, *, op, axis, dtype):
    computed = dtype or typeof(x).dtype
    if computed == np.bool_ and op in (lax.cumsum, lax.cumprod):
        computed = dtypes.default_int()
    x = lax.convert_element_type(x, computed)
    if computed == np.bool_:  # minima and maxima
        return lax.convert_element_type(op(lax.convert_element_type(x, np.uint8), axis), np.bool_)
    return op(x, axis)


def _accumulating(op: _Method) -> _Method:
    def accumulate(x: Any, axis: int, dtype: Any) -> Array:
        return _running(x, op=op, axis=axis, dtype=dtype)

    return accumulate


@compiled("op", "axis", "dtype", "logical")
def _scanned(x, *, op, axis, dtype, logical):
    x = lax.convert_element_type(x, dtype or typeof(x).dtype)
    if logical:
        x = lax.convert_element_type(truth(x), np.bool_)
    return lax.associative_scan(op, x, axis=axis)


def _scanning(op: _Method, logical: bool = False) -> _Method:
    def accumulate(x: Any, axis: int, dtype: Any) -> Array:
        return _scanned(x, op=op, axis=axis, dtype=dtype, logical=logical)

    return accumulate


@compiled("name", "axes", "dtype", "keepdims")
def _of_bits(a, initial, where, *, name, axes, dtype, keepdims):
    reduce, combine, neutral = _BITS[name.rpartition("_")[2]]
    if name.startswith("logical"):
        a = lax.convert_element_type(truth(a), np.bool_)
        initial = None if initial is None else truth(initial)
    x = lax.convert_element_type(a, dtype or typeof(a).dtype)
    if where is not None:
        mask = repeated(where, typeof(x).shape)
        x = lax.select(mask, x, lax.full_like(x, np.asarray(neutral).astype(typeof(x).dtype)))
    out = reduce(x, axes)
    if initial is not None:
        out = combine(lax.convert_element_type(initial, typeof(out).dtype), out)
    return lax.expand_dims(out, axes) if keepdims else out


_BITS: dict[str, tuple[_Method, _Method, int]] = {
    "and": (lax.reduce_and, lax.bitwise_and, -1),
    "or": (lax.reduce_or, lax.bitwise_or, 0),
    "xor": (lax.reduce_xor, lax.bitwise_xor, 0),
}


def _reducing_bits(name: str) -> _Method:
    def reduce(a, axis, dtype, out, keepdims, initial, where):
        return _of_bits(
            a, initial, where, name=name, axes=axes_of(axis, typeof(a).ndim),
            dtype=dtype_argument(dtype, f"{name}.reduce"), keepdims=bool(keepdims),
        )  # fmt: skip

    return reduce


def _reducing_extrema(reduction: _Method) -> _Method:
    def reduce(a, axis, dtype, out, keepdims, initial, where):
        if dtype is not None:
            requested = dtype_argument(dtype, f"{reduction.__name__}.reduce")
            a = lax.convert_element_type(a, requested)
        return reduction(a, axis, out, keepdims, initial, where)

    return reduce


# Arithmetic


@_ufunc(2, 0, reduce=_reductions.sum, accumulate=_accumulating(lax.cumsum), at=_updating("add"))
def add(x: Any, y: Any, /) -> Any:
    """``x + y`` elementwise; logical or for booleans.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> add(np.array([1, 2], np.int32), 10)
    Array([11, 12], dtype=int32)
    >>> add.reduce(np.array([1, 2, 3], np.int32))
    Array(6, dtype=int32)
    """
    return operate("add", operator.add, x, y)


@_ufunc(2, at=_updating("subtract"))
def subtract(x: Any, y: Any, /) -> Any:
    """``x - y`` elementwise.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: for booleans, and if an operand is not an array or a number.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> subtract(np.array([1, 2], np.int32), 10)
    Array([-9, -8], dtype=int32)
    """
    return operate("subtract", operator.sub, x, y)


@_ufunc(
    2, 1, reduce=_reductions.prod, accumulate=_accumulating(lax.cumprod), at=_updating("multiply")
)
def multiply(x: Any, y: Any, /) -> Any:
    """``x * y`` elementwise; logical and for booleans.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> multiply(np.array([1, 2], np.int32), 10)
    Array([10, 20], dtype=int32)
    >>> multiply.outer(np.array([1, 2]), np.array([1, 10])).tolist()
    [[1, 10], [2, 20]]
    """
    return operate("multiply", operator.mul, x, y)


@_ufunc(1)
@elementwise
def negative(x: Any, /) -> Any:
    """``-x`` elementwise; unsigned integers wrap.

    Args:
      x: an array or a number that is not boolean.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: for booleans, and if ``x`` is not an array or a number.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> negative(np.array([1, -2], np.int32))
    Array([-1,  2], dtype=int32)
    """
    return lax.neg(x)


@_ufunc(
    2, reduce=_reducing_extrema(_reductions.max), accumulate=_accumulating(lax.cummax),
    at=_updating("max"),
)  # fmt: skip
@elementwise
def maximum(x: Any, y: Any, /) -> Any:
    """Larger of two elements; NaN if either is NaN.

    Complex numbers are ordered lexicographically.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivative is that of the larger element, half of each for equal ones. The function is a
    :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``. :func:`fmax` ignores NaN.

    >>> maximum(np.array([1.0, np.nan], np.float32), 0.5)
    Array([ 1., nan], dtype=float32)
    """
    return lax.max(*pair("maximum", x, y))


@_ufunc(
    2, reduce=_reducing_extrema(_reductions.min), accumulate=_accumulating(lax.cummin),
    at=_updating("min"),
)  # fmt: skip
@elementwise
def minimum(x: Any, y: Any, /) -> Any:
    """Smaller of two elements; NaN if either is NaN.

    Complex numbers are ordered lexicographically.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivative is that of the smaller element, half of each for equal ones. The function is a
    :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``. :func:`fmin` ignores NaN.

    >>> minimum(np.array([1.0, np.nan], np.float32), 0.5)
    Array([0.5, nan], dtype=float32)
    """
    return lax.min(*pair("minimum", x, y))


# Bitwise and logical operations


@_ufunc(2, -1, reduce=_reducing_bits("bitwise_and"), accumulate=_scanning(lax.bitwise_and))
def bitwise_and(x: Any, y: Any, /) -> Any:
    """``x & y``: bitwise and of integers or booleans.

    Args:
      x, y: integers or booleans whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number of integer or boolean dtype.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> bitwise_and(np.array([1, 2, 3], np.int32), 2)
    Array([0, 2, 2], dtype=int32)
    """
    return operate("bitwise_and", operator.and_, x, y)


@_ufunc(2, 0, reduce=_reducing_bits("bitwise_or"), accumulate=_scanning(lax.bitwise_or))
def bitwise_or(x: Any, y: Any, /) -> Any:
    """``x | y``: bitwise or of integers or booleans.

    Args:
      x, y: integers or booleans whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number of integer or boolean dtype.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> bitwise_or(np.array([1, 2, 3], np.int32), 2)
    Array([3, 2, 3], dtype=int32)
    """
    return operate("bitwise_or", operator.or_, x, y)


@_ufunc(2, 0, reduce=_reducing_bits("bitwise_xor"), accumulate=_scanning(lax.bitwise_xor))
def bitwise_xor(x: Any, y: Any, /) -> Any:
    """``x ^ y``: bitwise exclusive or of integers or booleans.

    Args:
      x, y: integers or booleans whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number of integer or boolean dtype.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> bitwise_xor(np.array([1, 2, 3], np.int32), 2)
    Array([3, 0, 1], dtype=int32)
    """
    return operate("bitwise_xor", operator.xor, x, y)


def _truths(x: Any, y: Any) -> tuple[Any, Any]:
    return pair("logical", truth(x), truth(y))


@_ufunc(2, True, reduce=_reducing_bits("logical_and"), accumulate=_scanning(lax.bitwise_and, True))
@elementwise
def logical_and(x: Any, y: Any, /) -> Any:
    """True where both elements are nonzero (true).

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> logical_and(np.array([0, 1, 2]), np.array([1, 1, 0])).tolist()
    [False, True, False]
    """
    return lax.bitwise_and(*_truths(x, y))


@_ufunc(2, False, reduce=_reducing_bits("logical_or"), accumulate=_scanning(lax.bitwise_or, True))
@elementwise
def logical_or(x: Any, y: Any, /) -> Any:
    """True where at least one element is nonzero (true).

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> logical_or(np.array([0, 1, 2]), np.array([0, 1, 0])).tolist()
    [False, True, True]
    """
    return lax.bitwise_or(*_truths(x, y))


@_ufunc(2, False, reduce=_reducing_bits("logical_xor"), accumulate=_scanning(lax.bitwise_xor, True))
@elementwise
def logical_xor(x: Any, y: Any, /) -> Any:
    """True where exactly one element is nonzero (true).

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> logical_xor(np.array([0, 1, 2]), np.array([1, 1, 0])).tolist()
    [True, False, True]
    """
    return lax.bitwise_xor(*_truths(x, y))


# Log-sum-exp


def _log_sum(x: Any, y: Any, exp: _Method, scale: float) -> Any:
    """``log(exp(x) + exp(y))``: the larger plus a correction for the smaller."""
    if is_complex(x):
        x_first: Any = lax.real(x) >= lax.real(y)
    else:
        x_first = x >= y
    high, low = lax.select(x_first, x, y), lax.select(x_first, y, x)
    part = lax.real(high) if is_complex(x) else high
    endless = lax.abs(part) == np.inf
    known = lax.bitwise_and(endless, low == low)
    gap = lax.select(known, lax.full_like(low, -np.inf), low - high)
    alike = lax.bitwise_and(endless, low == high)
    total = high + lax.log1p(exp(gap)) * scale
    return lax.select(alike, high, total)


@compiled("base", "axes", "keepdims")
def _log_total(a, initial, where, *, base, axes, keepdims):
    x = as_inexact(a)
    x = lax.convert_element_type(x, typeof(x).dtype)
    if base != math.e:
        x = x * math.log(base)
    if where is not None:
        x = lax.select(repeated(where, typeof(x).shape), x, lax.full_like(x, -np.inf))
    top = lax.stop_gradient(lax.reduce_max(lax.real(x) if is_complex(x) else x, axes))
    top = lax.select(lax.is_finite(top), top, lax.full_like(top, 0))
    wide = lax.expand_dims(lax.convert_element_type(top, typeof(x).dtype), axes)
    out = lax.log(lax.reduce_sum(lax.exp(x - wide), axes))
    out = out + lax.convert_element_type(top, typeof(x).dtype)
    if base != math.e:
        out = out / math.log(base)
    if initial is not None:
        start = repeated(lax.convert_element_type(initial, typeof(x).dtype), typeof(out).shape)
        out = _log_sum(start, out, *_BASES[base])
    return lax.expand_dims(out, axes) if keepdims else out


def _reducing_logs(base: float) -> _Method:
    def reduce(a, axis, dtype, out, keepdims, initial, where):
        if dtype is not None:
            a = lax.convert_element_type(a, dtype_argument(dtype, "logaddexp.reduce"))
        axes = axes_of(axis, typeof(a).ndim)
        return _log_total(a, initial, where, base=base, axes=axes, keepdims=bool(keepdims))

    return reduce


@compiled("base", "axis", "dtype")
def _running_logs(x, *, base, axis, dtype):
    x = lax.convert_element_type(x, dtype or typeof(as_inexact(x)).dtype)
    if base == math.e:
        return lax.cumlogsumexp(x, axis)
    return lax.cumlogsumexp(x * math.log(base), axis) / math.log(base)


def _accumulating_logs(base: float) -> _Method:
    def accumulate(x: Any, axis: int, dtype: Any) -> Array:
        return _running_logs(x, base=base, axis=axis, dtype=dtype)

    return accumulate


_BASES: dict[float, tuple[_Method, float]] = {
    math.e: (lax.exp, 1.0),
    2.0: (lax.exp2, 1 / math.log(2)),
}


@_ufunc(2, -math.inf, reduce=_reducing_logs(math.e), accumulate=_accumulating_logs(math.e))
@elementwise
def logaddexp(x: Any, y: Any, /) -> Any:
    """``log(exp(x) + exp(y))`` elementwise, without intermediate overflow.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype; integers become floats.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivatives are the softmax weights of the two operands. The function is a :class:`ufunc`,
    with methods such as ``reduce`` and ``accumulate``.

    >>> round(float(logaddexp(1000.0, 1000.0)), 3)
    1000.693
    """
    x, y = broadcast_together(*inexact_pair("logaddexp", x, y))
    out: Any = _log_sum(x, y, *_BASES[math.e])
    if not is_complex(out):
        return out
    angle: Any = lax.imag(out)
    turns = lax.round(angle / (2 * math.pi), lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.complex(lax.real(out), angle - turns * (2 * math.pi))


@_ufunc(2, -math.inf, reduce=_reducing_logs(2.0), accumulate=_accumulating_logs(2.0))
@elementwise
def logaddexp2(x: Any, y: Any, /) -> Any:
    """``log2(2**x + 2**y)`` elementwise, without intermediate overflow.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype; integers become floats.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The function is a :class:`ufunc`, with methods such as ``reduce`` and ``accumulate``.

    >>> float(logaddexp2(1000.0, 1000.0))
    1001.0
    """
    x, y = broadcast_together(*inexact_pair("logaddexp2", x, y))
    return _log_sum(x, y, *_BASES[2.0])
