"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.primitive import Primitive, abstract, jvp
from .._ir.samples import Sample, bf16, c64, f32, i32, samples
from .._lower.lazy import hlo, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.zeros import Zero, add_tangents
from .accuracy import Accuracy, accurate, check_accuracy, operation
from .arithmetic import add, div, integer_pow, mul, sub
from .comparison import eq
from .complex_cases import exp_cases, expm1_cases, log_cases, sqrt_cases, with_cases
from .conversion import convert, converted
from .elementwise import (
    check_kind,
    derivatives,
    elementwise_batching,
    elementwise_lowering,
    elementwise_samples,
    fast_path,
    filled,
    full_like,
    joint_shape,
    scalar_like,
    to_shape,
    weak,
)
from .selection import select

_INEXACT: Final = ("inexact",)
_LN2: Final = math.log(2)

# Exponentials


def _emit_exp2(ctx, x, accuracy):
    if accuracy is None and ctx.in_avals[0].dtype in (dtypes.f32, dtypes.f64):
        from .elementary import emit_exp2  # loaded with the first exp2

        return emit_exp2(ctx, x)
    return hlo.exponential(hlo.multiply(filled(ctx, _LN2), x), result_accuracy=accuracy)


def _emit_log2(ctx, x, accuracy):
    y = hlo.log(x, result_accuracy=accuracy)
    dtype, shape = ctx.in_avals[0].dtype, ctx.out_avals[0].shape
    if not dtypes.issubdtype(dtype, np.complexfloating):
        return hlo.multiply(y, filled(ctx, 1 / _LN2))
    # Scale each part separately, so that an infinite part does not make the other NaN.
    part = np.finfo(dtype).dtype
    factor = shaped.full(np.asarray(1 / _LN2, part), shape)
    return hlo.complex(hlo.multiply(hlo.real(y), factor), hlo.multiply(hlo.imag(y), factor))


def _emit_logistic(ctx, x, accuracy):
    one = filled(ctx, 1)
    return hlo.divide(one, hlo.add(one, hlo.exponential(hlo.negate(x), result_accuracy=accuracy)))


exp_p: Final = accurate("exp", _INEXACT, with_cases(operation("exponential"), "", exp_cases))
exp2_p: Final = accurate("exp2", _INEXACT, _emit_exp2)
expm1_p: Final = accurate(
    "expm1", _INEXACT, with_cases(operation("exponential_minus_one"), "", expm1_cases)
)
log_p: Final = accurate("log", _INEXACT, with_cases(operation("log"), "", log_cases))
log2_p: Final = accurate("log2", _INEXACT, with_cases(_emit_log2, "", log_cases))
log1p_p: Final = accurate("log1p", _INEXACT, with_cases(operation("log_plus_one"), "", log_cases))
logistic_p: Final = accurate("logistic", _INEXACT, _emit_logistic)


@fast_path(exp_p, accuracy=None)
def exp(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Exponential ``e^x`` of each element.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is the result itself. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, -1.0], np.float32)
    >>> print(np.asarray(exp(x)).round(4))
    [1.     2.7183 0.3679]
    >>> from primax_core.lax import Tolerance
    >>> float(exp(0.0, accuracy=Tolerance(rtol=1e-5)))
    1.0
    """
    check_accuracy(accuracy)
    return exp_p.bind(x, accuracy=accuracy)


@fast_path(exp2_p, accuracy=None)
def exp2(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Power ``2^x`` of each element.

    In ``float32`` and ``float64`` integer powers that are in range are exact.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``log(2) 2^x``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 3.0, -1.0], np.float32)
    >>> print(np.asarray(exp2(x)).round(4))
    [1.  8.  0.5]
    """
    check_accuracy(accuracy)
    return exp2_p.bind(x, accuracy=accuracy)


@fast_path(expm1_p, accuracy=None)
def expm1(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """``exp(x) - 1`` of each element, accurate near 0.

    The result has full relative accuracy where ``exp(x)`` rounds to 1. :func:`log1p` is the
    inverse.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``exp(x)``. Under ``vmap`` the batch is one operand.

    >>> float(expm1(np.float32(1e-10))) == np.float32(1e-10)
    np.True_
    >>> float(exp(np.float32(1e-10))) - 1
    0.0
    """
    check_accuracy(accuracy)
    return expm1_p.bind(x, accuracy=accuracy)


@fast_path(log_p, accuracy=None)
def log(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Natural logarithm of each element.

    0 gives ``-inf``, and negative floats give NaN. Complex numbers give the principal value.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``1 / x``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([1.0, np.e, 0.0, -1.0], np.float32)
    >>> print(np.asarray(log(x)).round(4))
    [  0.   1. -inf  nan]
    """
    check_accuracy(accuracy)
    return log_p.bind(x, accuracy=accuracy)


@fast_path(log2_p, accuracy=None)
def log2(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Logarithm to base 2 of each element.

    0 gives ``-inf``, and negative floats give NaN.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``1 / (x log(2))``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([1.0, 8.0, 0.25], np.float32)
    >>> print(np.asarray(log2(x)).round(4))
    [ 0.  3. -2.]
    """
    check_accuracy(accuracy)
    return log2_p.bind(x, accuracy=accuracy)


@fast_path(log1p_p, accuracy=None)
def log1p(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """``log(1 + x)`` of each element, accurate near 0.

    The result has full relative accuracy where ``1 + x`` rounds to 1. -1 gives ``-inf``, and
    floats below -1 give NaN.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``1 / (1 + x)``. Under ``vmap`` the batch is one operand.

    >>> float(log1p(np.float32(1e-10))) == np.float32(1e-10)
    np.True_
    >>> float(log(np.float32(1) + np.float32(1e-10)))
    0.0
    """
    check_accuracy(accuracy)
    return log1p_p.bind(x, accuracy=accuracy)


@fast_path(logistic_p, accuracy=None)
def logistic(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """The logistic function ``1 / (1 + exp(-x))`` of each element.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``y (1 - y)`` for the result ``y``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, -1.0], np.float32)
    >>> print(np.asarray(logistic(x)).round(4))
    [0.5    0.7311 0.2689]
    """
    check_accuracy(accuracy)
    return logistic_p.bind(x, accuracy=accuracy)


derivatives(exp_p, lambda g, out, x, **_: mul(g, out))
derivatives(exp2_p, lambda g, out, x, **_: mul(scalar_like(x, _LN2), mul(g, out)))
derivatives(expm1_p, lambda g, out, x, **_: mul(g, exp(x)))
derivatives(log_p, lambda g, out, x, **_: div(g, x))
derivatives(log2_p, lambda g, out, x, **_: div(g, mul(x, scalar_like(x, _LN2))))
derivatives(log1p_p, lambda g, out, x, **_: div(g, add(x, scalar_like(x, 1))))
derivatives(logistic_p, lambda g, out, x, **_: mul(g, mul(out, sub(scalar_like(out, 1), out))))

# Roots

sqrt_p: Final = accurate("sqrt", _INEXACT, with_cases(operation("sqrt"), "", sqrt_cases))
rsqrt_p: Final = accurate("rsqrt", _INEXACT, operation("rsqrt"))
cbrt_p: Final = accurate("cbrt", ("float",), operation("cbrt"))


@fast_path(sqrt_p, accuracy=None)
def sqrt(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Square root of each element.

    Negative floats give NaN. Complex numbers give the principal value.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``1 / (2 sqrt(x))``, infinite at 0. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 4.0, -1.0], np.float32)
    >>> sqrt(x).tolist()
    [0.0, 2.0, nan]
    """
    check_accuracy(accuracy)
    return sqrt_p.bind(x, accuracy=accuracy)


@fast_path(rsqrt_p, accuracy=None)
def rsqrt(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Reciprocal square root ``1 / sqrt(x)`` of each element.

    0 gives infinity, and negative floats give NaN.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``-1 / (2 x sqrt(x))``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([1.0, 4.0, 0.0], np.float32)
    >>> print(np.asarray(rsqrt(x)).round(4))
    [1.  0.5 inf]
    """
    check_accuracy(accuracy)
    return rsqrt_p.bind(x, accuracy=accuracy)


@fast_path(cbrt_p, accuracy=None)
def cbrt(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Real cube root of each element, with the sign of the element.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``1 / (3 cbrt(x)²)``, infinite at 0. Under ``vmap`` the batch is one
    operand.

    >>> x = np.array([0.0, 8.0, -27.0], np.float32)
    >>> print(np.asarray(cbrt(x)).round(4))
    [ 0.  2. -3.]
    """
    check_accuracy(accuracy)
    return cbrt_p.bind(x, accuracy=accuracy)


derivatives(sqrt_p, lambda g, out, x, **_: mul(g, div(scalar_like(out, 0.5), out)))
derivatives(rsqrt_p, lambda g, out, x, **_: mul(g, mul(scalar_like(out, -0.5), div(out, x))))
derivatives(
    cbrt_p, lambda g, out, x, **_: mul(g, mul(scalar_like(out, 1 / 3), integer_pow(out, -2)))
)

# Powers

pow_p: Final = Primitive("pow")


@fast_path(pow_p)
def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Elements of ``x`` raised to the powers in ``y``.

    For powers that are Python integers see :func:`integer_pow`. Negative floats to a power that
    is not an integer give NaN.

    Args:
      x: the bases, an array or a number of floating or complex dtype.
      y: the powers, of the dtype of ``x`` or of an integer dtype, with a shape as for
        :func:`add`.

    Returns:
      An array of the joint shape and of the dtype of ``x``.

    Raises:
      TypeError: if the bases are integers, the dtypes differ otherwise, or the shapes are
        incompatible.

    The derivative with respect to ``x`` is ``y x^(y-1)``, and 0 where ``y`` is an integer 0. The
    derivative with respect to ``y`` is ``log(x) x^y``, with 0 in place of ``log(0)``; integer
    powers have none. Under ``vmap`` the batch is one operand.

    >>> pow(np.array([2.0, 3.0], np.float32), np.array([3, 2], np.int32)).tolist()
    [8.0, 9.0]
    >>> float(pow(4.0, 0.5))
    2.0
    """
    return pow_p.bind(x, y)


@pow_p.rule(abstract)
def _abstract(x, y):
    check_kind("pow", x.dtype, _INEXACT, 0)
    check_kind("pow", y.dtype, ("number",), 1)
    if x.dtype != y.dtype and not dtypes.issubdtype(y.dtype, np.integer):
        raise TypeError(
            "the first argument to pow must have an inexact dtype (float or complex), and the "
            "second argument must have an inexact or integer dtype, and two inexact dtypes must "
            f"match, but got {x.dtype.name} and {y.dtype.name} respectively."
        )
    return x.update(shape=joint_shape("pow", (x, y)), weak_type=weak((x, y)))


def _emit_pow(ctx, x, y):
    base, exponent = ctx.in_avals
    y = converted(ctx, y, exponent.dtype, base.dtype, ctx.out_avals[0].shape)
    return hlo.power(x, y)


elementwise_lowering(pow_p, _emit_pow)
elementwise_batching(pow_p)


@pow_p.rule(jvp)
def _jvp(primals, tangents):
    (x, y), (gx, gy) = primals, tangents
    out = pow(x, y)
    aval = typeof(out)
    total: Any = Zero(aval.tangent_aval())
    if type(gx) is not Zero:
        total = to_shape(mul(gx, _by_base(x, y)), aval.shape)
    if type(gy) is not Zero:
        logs = log(select(eq(x, scalar_like(x, 0)), full_like(x, 1), x))
        total = add_tangents(total, to_shape(mul(gy, mul(logs, out)), aval.shape))
    return out, total


def _by_base(x: Any, y: Any) -> Any:
    if dtypes.issubdtype(typeof(y).dtype, np.inexact):
        return mul(y, pow(x, sub(y, full_like(y, 1))))
    y = convert(y, typeof(x).dtype, typeof(y).weak_type)
    none = eq(y, scalar_like(y, 0))
    safe = select(none, full_like(y, 1), y)
    derivative = mul(safe, pow(x, sub(y, full_like(y, 1))))
    none = to_shape(none, typeof(derivative).shape)
    return select(none, full_like(derivative, 0), derivative)


for _prim in (exp_p, exp2_p, expm1_p, logistic_p):
    elementwise_samples(_prim, "fc", accuracy=None)
for _prim in (log_p, log2_p, log1p_p, sqrt_p, rsqrt_p):
    elementwise_samples(_prim, "fc", low=0.2, high=3, accuracy=None)
elementwise_samples(cbrt_p, "f", low=0.2, high=3, accuracy=None)


@pow_p.rule(samples)
def _samples():
    base = f32(3, low=0.2)
    yield Sample(base, f32(3))
    yield Sample(base, f32())
    yield Sample(f32(low=0.2), f32(2, 2))
    yield Sample(f32(3, low=-2, high=-0.2), i32(3, low=-2, high=3))
    yield Sample(c64(2, low=0.2), c64(2))
    yield Sample(bf16(0, 2), bf16(0, 2))
