"""Integrals of functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import closure_convert, custom_jvp, jvp, lax, vmap
from primax_core.extend import Tracer, dtypes, is_operand, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays

from ..optimize._results import message_of

# Positive nodes of the Gauss-Kronrod rule of 21 points and their weights (Piessens et al.,
# QUADPACK, 1983); the nodes with odd indices are those of the Gauss rule of 10 points.
_HALF: Final = (
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452,
    0.930157491355708226001207180059508, 0.865063366688984510732096688423493,
    0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784,
    0.294392862701460198131126603103866, 0.148874338981631210884826001129720, 0.0,
)  # fmt: skip
_HALF_WEIGHTS: Final = (
    0.011694638867371874278064396062192, 0.032558162307964727478818972459390,
    0.054755896574351996031381300244580, 0.075039674810919952767043140916190,
    0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109585166, 0.134709217311473325928054001771707,
    0.142775938577060080797094273138717, 0.147739104901338491374841515972068,
    0.149445554002916905664936468389821,
)  # fmt: skip
NODES: Final = np.array([-x for x in _HALF[:-1]] + list(reversed(_HALF)))
WEIGHTS: Final = np.array(list(_HALF_WEIGHTS[:-1]) + list(reversed(_HALF_WEIGHTS)))
GAUSS: Final = np.zeros(21)
GAUSS[1::2] = np.polynomial.legendre.leggauss(10)[1]

_MESSAGES: Final = {
    0: "The tolerance was reached.",
    1: "The maximum number of subdivisions was reached: increase limit, or divide the interval "
    "where the integrand is difficult.",
    2: "The estimate does not decrease because of rounding: the tolerance cannot be reached.",
    3: "The integral is not finite.",
}


class QuadInfo(NamedTuple):
    """The course of an adaptive integration.

    Attributes:
      neval: the number of evaluations.
      last: the number of intervals.
      status: 0; 1 if ``limit`` was reached; 2 if rounding prevents the tolerance; 3 if the
        integral is not finite.
      success: true if the status is 0.
    """

    neval: Any
    last: Any
    status: Any
    success: Any

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(self.status, _MESSAGES)


def _substituted(fun: Callable[..., Any], a: Any, b: Any, kind: str) -> Callable[..., Any]:
    """The integrand in a variable from 0 to 1, in which infinite ranges are finite."""

    def inner(u: Any, *values: Any) -> Any:
        if kind == "finite":
            return fun(a + (b - a) * u, *values) * (b - a)
        if kind == "above":  # a to infinity
            return fun(a + (1 - u) / u, *values) / (u * u)
        if kind == "below":
            return fun(b - (1 - u) / u, *values) / (u * u)
        x = (1 - u) / u
        return (fun(x, *values) + fun(-x, *values)) / (u * u)

    return inner


def _kind(a: Any, b: Any) -> tuple[str, float]:
    """The kind of a range, and the sign of the integral.

    Raises:
      ValueError: if infinite bounds are equal.
    """
    infinite = [
        not isinstance(x, Tracer) and bool(np.isinf(np.asarray(x, dtype=float))) for x in (a, b)
    ]
    if not any(infinite):
        return "finite", 1.0
    if all(infinite):
        if float(a) == float(b):
            raise ValueError(f"quad: both bounds are {float(a)}")
        return "both", 1.0 if float(b) > 0 else -1.0
    if infinite[1]:
        return ("above", 1.0) if float(b) > 0 else ("below_a", -1.0)
    return ("below", 1.0) if float(a) < 0 else ("above_b", -1.0)


def _rule(fun: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any]:
    """The integral over an interval, and the estimate of its error."""
    dtype = typeof(low).dtype
    half = (high - low) * 0.5
    points = (low + high) * 0.5 + half * pnp.asarray(NODES, dtype=dtype)
    values = vmap(fun)(points)
    scale = lax.convert_element_type(half, typeof(values).dtype)
    weights, gauss = (pnp.asarray(w, dtype=typeof(values).dtype) for w in (WEIGHTS, GAUSS))
    total = scale * pnp.tensordot(weights, values, 1, precision=lax.Precision.HIGHEST)
    coarse = scale * pnp.tensordot(gauss, values, 1, precision=lax.Precision.HIGHEST)
    mean = total / pnp.where(scale == 0, 1, 2 * scale)
    spread = pnp.abs(scale) * pnp.tensordot(pnp.abs(weights), pnp.abs(values - mean[None]), 1)
    size = pnp.abs(scale) * pnp.tensordot(pnp.abs(weights), pnp.abs(values), 1)
    gap = pnp.max(pnp.abs(total - coarse))
    spread, size = pnp.max(spread), pnp.max(size)
    # The empirical estimate of QUADPACK
    ratio = 200 * gap / pnp.where(spread > 0, spread, 1)
    error = pnp.where(spread > 0, spread * pnp.minimum(1, ratio * lax.sqrt(ratio)), gap)
    return total, pnp.maximum(error, 50 * dtypes.finfo(dtype).eps * size * 0.04)


class _State(NamedTuple):
    lows: Any
    highs: Any
    totals: Any
    errors: Any
    count: Any


def _adaptive(
    fun: Callable[[Any], Any], dtype: Any, epsabs: Any, epsrel: Any, limit: int
) -> tuple[_State, Any, Any, Any]:
    """Bisection of the interval with the largest error, from 0 to 1."""
    zero, one = pnp.zeros((), dtype), pnp.ones((), dtype)
    total, error = _rule(fun, zero, one)
    state = _State(
        pnp.full(limit, 0.5, dtype).at[0].set(0), pnp.full(limit, 0.5, dtype).at[0].set(1),
        pnp.zeros((limit, *typeof(total).shape), typeof(total).dtype).at[0].set(total),
        pnp.zeros(limit, typeof(error).dtype).at[0].set(error), 1,
    )  # fmt: skip
    eps = dtypes.finfo(dtype).eps

    def accuracy(s: _State) -> tuple[Any, Any, Any]:
        whole = pnp.sum(s.totals, 0)
        size = pnp.max(pnp.abs(whole))
        return pnp.sum(s.errors), pnp.maximum(epsabs, epsrel * size), size

    def narrow(s: _State) -> Any:
        i = pnp.argmax(s.errors)
        return s.highs[i] - s.lows[i] <= 8 * eps * pnp.maximum(s.highs[i], 1e-6)

    def going(s: _State) -> Any:
        error, tolerance, _ = accuracy(s)
        return (s.count < limit) & (error > tolerance) & ~narrow(s)

    def step(s: _State) -> _State:
        i = pnp.argmax(s.errors)
        low, high = s.lows[i], s.highs[i]
        middle = 0.5 * (low + high)
        totals, errors = lax.map(
            lambda ends: _rule(fun, *ends), (pnp.stack([low, middle]), pnp.stack([middle, high]))
        )
        where = pnp.stack([i, pnp.asarray(s.count, dtype=typeof(i).dtype)])
        return _State(
            s.lows.at[s.count].set(middle), s.highs.at[i].set(middle).at[s.count].set(high),
            s.totals.at[where].set(totals), s.errors.at[where].set(errors), s.count + 1,
        )  # fmt: skip

    last = lax.while_loop(going, step, state)
    error, tolerance, _ = accuracy(last)
    status = pnp.where(error <= tolerance, 0, pnp.where(narrow(last), 2, 1))
    return last, pnp.sum(last.totals, 0), error, status


def quad(
    func: Callable[..., Any], a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (),
    full_output: bool = False, epsabs: ArrayLike = 1.49e-8, epsrel: ArrayLike = 1.49e-8,
    limit: int = 50,
) -> Any:  # fmt: skip
    """Integral of a function over an interval, by adaptive Gauss-Kronrod rules of 21 points.

    Args:
      func: ``func(x, *args)``, a function of a number; its value may be an array, then the largest
        error decides. It is evaluated at many points at once by ``vmap``.
      a, b: the bounds, numbers. Infinite bounds must be known while tracing.
      args: further arguments, as a tuple.
      full_output: also return a :class:`QuadInfo`.
      epsabs, epsrel: tolerances of the error estimate: their larger one decides. In ``float32`` a
        relative tolerance below 1e-5 is replaced with 1e-5.
      limit: the maximum number of intervals.

    Returns:
      The integral and an estimate of its error.

    Derivatives of any order with respect to the bounds, ``args`` and arrays that ``func`` closes
    over differentiate the integrand on the intervals of the last subdivision.

    The method is that of QUADPACK's QAG (Piessens et al., 1983), without extrapolation at
    singularities.

    Raises:
      TypeError: if ``func`` is not a function or ``args`` not a tuple.
      ValueError: if a bound is not a number, or ``limit`` is not positive.

    >>> value, error = quad(lambda x: x * x, 0.0, 3.0)
    >>> round(float(value), 4)
    9.0
    """
    if not callable(func):
        raise TypeError(f"quad: func must be a function, got {type(func).__name__}")
    if not isinstance(args, tuple):
        raise TypeError(f"quad: args must be a tuple, got {type(args).__name__}")
    limit = operator.index(limit)
    if limit < 1:
        raise ValueError(f"quad: limit must be positive, got {limit}")
    check_arrays("quad", a, b)
    for bound in (a, b):
        if typeof(bound).ndim:
            raise ValueError(f"quad: bounds are numbers, got shape {typeof(bound).shape}: use vmap")
    kind, sign = _kind(a, b)
    avals = [typeof(x) for x in (a, b)]
    dtype = dtypes.lattice_result(tuple([(v.dtype, v.weak_type) for v in avals]))[0]
    dtype = dtypes.default_float() if dtype.kind in "iub" else dtype
    dtype = dtypes.f32 if np.dtype(dtype).itemsize < 4 else dtype
    low, high = (lax.convert_element_type(x, dtype) for x in (a, b))
    if kind[-2:] in ("_a", "_b"):  # exchanged bounds
        kind, low, high = kind[:-2], high, low
    epsrel = pnp.maximum(epsrel, 1e-5 if dtype == dtypes.f32 else 5e-14)
    example = pnp.full((), 0.5, dtype)
    converted, values = closure_convert(lambda x: func(x, *args), example)
    total, error, last, status = _integral(converted, kind, (epsabs, epsrel), limit)(
        [low, high], values
    )
    if not full_output:
        return sign * total, error
    evaluations = 21 * (2 * last - 1) * (2 if kind == "both" else 1)
    return sign * total, error, QuadInfo(evaluations, last, status, status == 0)


def _integral(
    converted: Callable[..., Any], kind: str, tolerances: tuple[Any, Any], limit: int
) -> Callable[..., Any]:
    """The integral as a function of bounds and values, with its derivative."""

    def integrand(bounds: Any, values: Any) -> Callable[[Any], Any]:
        whole = _substituted(converted, *bounds, kind)
        return lambda u: _inexact(whole(u, *values))

    def computed(bounds: Any, values: Any) -> Any:
        dtype = typeof(bounds[0]).dtype
        last, total, error, status = _adaptive(integrand(bounds, values), dtype, *tolerances, limit)
        status = pnp.where(pnp.all(pnp.isfinite(total)), status, 3)
        return total, error, last.count, status, last.lows, last.highs

    @custom_jvp
    def integral(bounds: Any, values: Any) -> Any:
        return computed(bounds, values)[:4]

    @integral.defjvp
    def _integral_jvp(primals: Any, tangents: Any) -> Any:
        total, error, count, status, lows, highs = computed(*primals)
        lows, highs = lax.stop_gradient((lows, highs))

        def on_intervals(bounds: Any, values: Any) -> Any:
            fun = integrand(bounds, values)
            return pnp.sum(vmap(lambda a, b: _rule(fun, a, b)[0])(lows, highs), 0)

        _, change = jvp(on_intervals, primals, tangents)
        zeros = [pnp.zeros_like(error), *(_no_tangent(x) for x in (count, status))]
        return (total, error, count, status), (change, *zeros)

    return integral


def _no_tangent(x: Any) -> Any:
    return np.zeros(typeof(x).shape, dtypes.float0)


def _inexact(x: Any) -> Any:
    x = pnp.asarray(x) if not is_operand(x) or not hasattr(x, "ndim") else x
    return lax.convert_element_type(x, dtypes.default_float()) if x.dtype.kind in "iub" else x


def fixed_quad(
    func: Callable[..., Any], a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (), n: int = 5
) -> tuple[Any, None]:
    """Integral of a function by the Gauss-Legendre rule of ``n`` points.

    Args:
      func: ``func(x, *args)`` of a vector ``[n]``; the last axis of its value is that of ``x``.
      a, b: finite bounds, numbers.
      args: further arguments, as a tuple.
      n: the number of points.

    Returns:
      The integral, and None.

    Raises:
      ValueError: if ``n`` is not positive, or a bound is infinite.

    >>> value, _ = fixed_quad(lambda x: x**3, 0.0, 2.0, n=2)
    >>> round(float(value), 5)
    4.0
    """
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"fixed_quad: n must be positive, got {n}")
    if _kind(a, b)[0] != "finite":
        raise ValueError("fixed_quad: bounds must be finite: substitute the variable, or use quad")
    low, high = (pnp.asarray(x, dtype=None) for x in (a, b))
    dtype = (low + high + 0.5).dtype
    nodes, weights = (pnp.asarray(v, dtype=dtype) for v in np.polynomial.legendre.leggauss(n))
    low, high = low.astype(dtype), high.astype(dtype)
    values = func((high - low) * 0.5 * (nodes + 1) + low, *args)
    weights = lax.convert_element_type(weights, typeof(values).dtype)
    total = pnp.matmul(values, weights, precision=lax.Precision.HIGHEST)
    return lax.convert_element_type((high - low) * 0.5, typeof(values).dtype) * total, None
