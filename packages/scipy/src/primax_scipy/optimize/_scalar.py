"""Minima and roots of functions of one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import jvp, lax
from primax_core.extend import dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays

from ._implicit import root_with_derivative
from ._results import message_of

_GOLDEN: Final = 0.3819660112501051
_MESSAGES: Final = {
    0: "The tolerance was reached.",
    1: "Maximum number of iterations has been exceeded.",
    2: "The bracket does not contain a solution: choose other ends.",
    3: "The function or its derivative is not finite or is zero.",
}


class ScalarResult(NamedTuple):
    """The result of a minimization of a function of one number.

    Attributes:
      x, fun: the point and the value.
      success: true if the status is 0.
      status: 0; 1 if the maximum number of steps was reached; 2 if no bracket was found; 3 if the
        value is not finite.
      nfev, nit: the numbers of evaluations and steps.
    """

    x: Any
    fun: Any
    success: Any
    status: Any
    nfev: Any
    nit: Any

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(self.status, _MESSAGES)


class RootResults(NamedTuple):
    """A root of a function of one number.

    Attributes:
      root: the root.
      converged: true if the status is 0.
      iterations, function_calls: the numbers of steps and evaluations.
      status: 0; 1 if the maximum number of steps was reached; 2 if the function has the same sign
        at both ends of the bracket; 3 if a value is not finite or a derivative is zero.
    """

    root: Any
    converged: Any
    iterations: Any
    function_calls: Any
    status: Any

    @property
    def flag(self) -> str:
        """The status in words."""
        return message_of(self.status, _MESSAGES)


def _numbers(name: str, *xs: Any) -> list[Any]:
    """Numbers in a common float dtype.

    Raises:
      ValueError: if one is an array.
    """
    check_arrays(name, *xs)
    avals = [typeof(x) for x in xs]
    for a in avals:
        if a.shape:
            raise ValueError(f"{name} takes numbers, got shape {a.shape}: use vmap")
    dtype = dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals]))[0]
    dtype = dtypes.default_float() if dtype.kind in "iub" else dtype
    return [lax.convert_element_type(x, dtype) for x in xs]


class _Bracket(NamedTuple):
    a: Any
    b: Any
    c: Any
    fb: Any
    count: Any
    valid: Any


def _bracketed(fun: Callable[[Any], Any], a: Any, b: Any) -> _Bracket:
    """Three points around a minimum, by growing steps downhill."""
    fa, fb = fun(a), fun(b)
    swap = fa < fb
    a, b, fb, fa = *(pnp.where(swap, v, w) for v, w in ((b, a), (a, b), (fa, fb))), pnp.where(
        swap, fb, fa)  # fmt: skip
    c = b + 1.618034 * (b - a)

    def going(s: Any) -> Any:
        _, _, _, fb, fc, k = s
        return (fc < fb) & (k < 110)

    def step(s: Any) -> Any:
        _, b, c, _, fc, k = s
        new = c + 1.618034 * (c - b)
        return b, c, new, fc, fun(new), k + 1

    a, b, c, fb, fc, k = lax.while_loop(going, step, (a, b, c, fb, fun(c), 0))
    return _Bracket(a, b, c, fb, k + 3, (fc >= fb) & pnp.isfinite(fb))


class _Brent(NamedTuple):
    low: Any
    high: Any
    points: Any
    values: Any
    move: Any
    before: Any
    steps: Any


def _brent(
    fun: Callable[[Any], Any], low: Any, high: Any, x: Any, fx: Any, xtol: Any, relative: Any,
    maxiter: Any, parabolas: bool,
) -> _Brent:  # fmt: skip
    """Brent, *Algorithms for Minimization without Derivatives* (1973), chapter 5; golden section
    without parabolas."""

    def tolerance(x: Any) -> Any:
        return relative * pnp.abs(x) + xtol

    def going(s: _Brent) -> Any:
        x = s.points[0]
        far = pnp.abs(x - 0.5 * (s.low + s.high)) > 2 * tolerance(x) - 0.5 * (s.high - s.low)
        return far & (s.steps < maxiter)

    def step(s: _Brent) -> _Brent:
        (x, w, v), (fx, fw, fv) = s.points, s.values
        tol = tolerance(x)
        r, q = (x - w) * (fx - fv), (x - v) * (fx - fw)
        p = (x - v) * q - (x - w) * r
        q = 2 * (q - r)
        p, q = pnp.where(q > 0, -p, p), pnp.abs(q)
        usable = (pnp.abs(s.before) > tol) & (pnp.abs(p) < pnp.abs(0.5 * q * s.before))
        usable = usable & (p > q * (s.low - x)) & (p < q * (s.high - x)) & parabolas
        jump = p / pnp.where(q == 0, 1, q)
        close = (x + jump - s.low < 2 * tol) | (s.high - x - jump < 2 * tol)
        jump = pnp.where(close, pnp.where(x < 0.5 * (s.low + s.high), tol, -tol), jump)
        side = pnp.where(x >= 0.5 * (s.low + s.high), s.low - x, s.high - x)
        move = pnp.where(usable, jump, _GOLDEN * side)
        before = pnp.where(usable, s.move, side)
        away = pnp.where(pnp.abs(move) >= tol, move, pnp.where(move >= 0, tol, -tol))
        u = x + away
        fu = fun(u)
        better = fu <= fx
        low = pnp.where(better, pnp.where(u >= x, x, s.low), pnp.where(u < x, u, s.low))
        high = pnp.where(better, pnp.where(u >= x, s.high, x), pnp.where(u < x, s.high, u))
        second = (fu <= fw) | (w == x)
        third = (fu <= fv) | (v == x) | (v == w)
        new_w = pnp.where(better, x, pnp.where(second, u, w))
        new_fw = pnp.where(better, fx, pnp.where(second, fu, fw))
        new_v = pnp.where(better | second, w, pnp.where(third, u, v))
        new_fv = pnp.where(better | second, fw, pnp.where(third, fu, fv))
        points = (pnp.where(better, u, x), new_w, new_v)
        values = (pnp.where(better, fu, fx), new_fw, new_fv)
        return _Brent(low, high, points, values, away, before, s.steps + 1)

    zero = pnp.zeros_like(x)
    return lax.while_loop(going, step, _Brent(low, high, (x, x, x), (fx, fx, fx), zero, zero, 0))


def minimize_scalar(
    fun: Callable[..., Any], bracket: Sequence[ArrayLike] | None = None,
    bounds: Sequence[ArrayLike] | None = None, args: tuple[Any, ...] = (),
    method: str | None = None, tol: float | None = None, options: Mapping[str, Any] | None = None,
) -> ScalarResult:  # fmt: skip
    """A local minimum of a function of one number.

    Args:
      fun: ``fun(x, *args)``, a real number.
      bracket: two numbers from which to search a bracket downhill (0 and 1), for ``"brent"`` and
        ``"golden"``.
      bounds: two numbers, for ``"bounded"``.
      args: further arguments, as a tuple.
      method: ``"brent"``, ``"golden"`` or ``"bounded"``, which is the default with ``bounds``.
      tol: a synonym of the option ``xtol``.
      options: ``xtol``, the tolerance of ``x`` (the root of the machine epsilon, relative; for
        ``"bounded"`` 1e-5, absolute); ``maxiter`` (500).

    ``x`` and ``fun`` are differentiable in ``args`` and in arrays that ``fun`` closes over, by the
    implicit function theorem: at the minimum the derivative is zero, or the bound is active.

    Raises:
      ValueError: if the method is unknown, or bounds are missing or in the wrong order.
      TypeError: if an option is unknown.

    >>> result = minimize_scalar(lambda x: (x - 2) ** 2)
    >>> bool(result.success), round(float(result.x), 2)
    (True, 2.0)
    """
    name = ("brent" if bounds is None else "bounded") if method is None else str(method).lower()
    if name not in ("brent", "golden", "bounded"):
        raise ValueError(
            f"minimize_scalar: unknown method {method!r}: use 'brent', 'golden' or 'bounded'"
        )
    settings = dict(options or {})
    unknown = sorted(set(settings) - {"xtol", "maxiter"})
    if unknown:
        raise TypeError(
            f"minimize_scalar has no option {unknown[0]!r}: it has 'xtol' and 'maxiter'"
        )
    if name == "bounded" and (bounds is None or len(bounds) != 2):
        raise ValueError("minimize_scalar: the method 'bounded' needs bounds=(low, high)")
    if name != "bounded" and bounds is not None:
        raise ValueError(f"minimize_scalar: bounds need the method 'bounded', not {method!r}")
    ends = _numbers(
        "minimize_scalar", *(bounds if name == "bounded" else bracket or (0.0, 1.0))[:2]
    )
    dtype = typeof(ends[0]).dtype
    root_eps = float(np.sqrt(dtypes.finfo(dtype).eps))
    xtol = settings.get("xtol", tol)
    if xtol is None:
        xtol = 1e-5 if name == "bounded" else root_eps
    maxiter = settings.get("maxiter", 500)
    value = lambda x: lax.convert_element_type(fun(x, *args), dtype)

    def solve(_: Any) -> tuple[Any, Any]:
        a, b = (lax.stop_gradient(v) for v in ends)
        return _minimized(value, a, b, name, xtol, root_eps, maxiter)

    def stationary(x: Any) -> Any:
        g = jvp(value, (x,), (pnp.ones_like(x),))[1]
        if name != "bounded":
            return g
        low, high = ends
        margin = lax.stop_gradient(8 * (xtol + root_eps * pnp.abs(x)))
        left, right = (x - low <= margin) & (g > 0), (high - x <= margin) & (g < 0)
        return pnp.where(left, x - low, pnp.where(right, x - high, g))

    x, (count, status, steps) = root_with_derivative(stationary, lax.stop_gradient(ends[0]), solve)
    return ScalarResult(x, value(x), status == 0, status, count, steps)


def _minimized(
    fun: Callable[[Any], Any], a: Any, b: Any, name: str, xtol: Any, root_eps: float, maxiter: Any
) -> tuple[Any, Any]:
    if name == "bounded":
        x = a + _GOLDEN * (b - a)
        out = _brent(fun, a, b, x, fun(x), xtol / 3, root_eps, maxiter, True)
        count, valid = out.steps + 1, a <= b
    else:
        start = _bracketed(fun, a, b)
        low, high = pnp.minimum(start.a, start.c), pnp.maximum(start.a, start.c)
        relative = pnp.maximum(xtol, 4 * dtypes.finfo(typeof(a).dtype).eps)
        out = _brent(fun, low, high, start.b, start.fb, 1e-11, relative, maxiter, name == "brent")
        count, valid = out.steps + start.count, start.valid
    status = pnp.where(out.steps >= maxiter, 1, 0)
    status = pnp.where(pnp.isfinite(out.values[0]), pnp.where(valid, status, 2), 3)
    return out.points[0], (count, status, out.steps)


_ROOT_METHODS: Final = ("brentq", "bisect", "newton", "secant", "halley")


def root_scalar(
    f: Callable[..., Any],
    args: tuple[Any, ...] = (),
    method: str | None = None,
    bracket: Sequence[ArrayLike] | None = None,
    fprime: Callable[..., Any] | None = None,
    fprime2: Callable[..., Any] | None = None,
    x0: ArrayLike | None = None,
    x1: ArrayLike | None = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int = 100,
) -> RootResults:
    """A root of a function of one number.

    Args:
      f: ``f(x, *args)``, a real number.
      args: further arguments, as a tuple.
      method: ``"brentq"`` or ``"bisect"`` with a bracket, ``"newton"``, ``"halley"`` or
        ``"secant"`` with a guess. The default is ``"brentq"`` with a bracket and otherwise
        ``"newton"``.
      bracket: two numbers at which ``f`` has different signs.
      fprime, fprime2: derivatives as functions like ``f``; by default automatic.
      x0, x1: the guess and, for ``"secant"``, the second one.
      xtol, rtol: tolerances of the root, absolute and relative (4 units of the last place).
      maxiter: the maximum number of steps.

    The root is differentiable in ``args`` and in arrays that ``f`` closes over, to any order, by
    the implicit function theorem.

    Raises:
      ValueError: if the method is unknown, or its bracket or guess is missing.

    >>> result = root_scalar(lambda x: x * x - 2, bracket=(0.0, 2.0))
    >>> bool(result.converged), round(float(result.root), 4)
    (True, 1.4142)
    """
    name = (
        ("brentq" if bracket is not None else "newton") if method is None else str(method).lower()
    )
    if name not in _ROOT_METHODS:
        raise ValueError(
            f"root_scalar: unknown method {method!r}: use one of {list(_ROOT_METHODS)}"
        )
    closed = name in ("brentq", "bisect")
    if closed and (bracket is None or len(bracket) != 2):
        raise ValueError(f"root_scalar: the method {name!r} needs bracket=(a, b)")
    if not closed and x0 is None:
        raise ValueError(f"root_scalar: the method {name!r} needs x0")
    if name == "secant" and x1 is None:
        x1 = x0 * (1 + 1e-4) + pnp.where(x0 >= 0, 1e-4, -1e-4)
    ends = _numbers("root_scalar", *(bracket if closed else (x0, x1 if name == "secant" else x0)))
    dtype = typeof(ends[0]).dtype
    eps = float(dtypes.finfo(dtype).eps)
    tolerances = (4 * eps * 1e-3 if xtol is None else xtol, 4 * eps if rtol is None else rtol)
    value = lambda x: lax.convert_element_type(f(x, *args), dtype)
    ones = lambda x: pnp.ones_like(x)
    first = (lambda x: fprime(x, *args)) if fprime else lambda x: jvp(value, (x,), (ones(x),))[1]
    second = (lambda x: fprime2(x, *args)) if fprime2 else lambda x: jvp(first, (x,), (ones(x),))[1]

    def solve(_: Any) -> tuple[Any, Any]:
        a, b = (lax.stop_gradient(v) for v in ends)
        if closed:
            return _closed(value, a, b, *tolerances, maxiter, name == "brentq")
        return _open(name, value, first, second, a, b, *tolerances, maxiter)

    root, (steps, count, status) = root_with_derivative(value, lax.stop_gradient(ends[0]), solve)
    return RootResults(root, status == 0, steps, count, status)


def _closed(
    fun: Callable[[Any], Any], a: Any, b: Any, xtol: Any, rtol: Any, maxiter: Any, brent: bool
) -> tuple[Any, Any]:
    """Bisection, and Brent's method (1973), chapter 4."""
    fa, fb = fun(a), fun(b)
    valid = (pnp.sign(fa) * pnp.sign(fb) <= 0) & pnp.isfinite(fa) & pnp.isfinite(fb)

    def delta(b: Any) -> Any:
        return 0.5 * (xtol + rtol * pnp.abs(b))

    def going(s: Any) -> Any:
        _, b, c, _, fb, *_, k = s
        return (fb != 0) & (pnp.abs(0.5 * (c - b)) > delta(b)) & (k < maxiter) & valid

    def step(s: Any) -> Any:
        a, b, c, fa, fb, fc, d, e, k = s
        tol, half = delta(b), 0.5 * (c - b)
        ratio = fb / pnp.where(fa == 0, 1, fa)
        linear = a == c
        q0, r0 = fa / pnp.where(fc == 0, 1, fc), fb / pnp.where(fc == 0, 1, fc)
        p = pnp.where(
            linear, 2 * half * ratio, ratio * (2 * half * q0 * (q0 - r0) - (b - a) * (r0 - 1))
        )
        q = pnp.where(linear, 1 - ratio, (q0 - 1) * (r0 - 1) * (ratio - 1))
        q, p = pnp.where(p > 0, -q, q), pnp.abs(p)
        small = 2 * p < pnp.minimum(3 * half * q - pnp.abs(tol * q), pnp.abs(e * q))
        usable = (pnp.abs(e) >= tol) & (pnp.abs(fa) > pnp.abs(fb)) & small & brent
        e = pnp.where(usable, d, half)
        d = pnp.where(usable, p / pnp.where(q == 0, 1, q), half)
        a, fa = b, fb
        b = b + pnp.where(pnp.abs(d) > tol, d, pnp.where(half > 0, tol, -tol))
        fb = fun(b)
        return (*_oriented(a, b, c, fa, fb, fc, d, e), k + 1)

    start = (*_oriented(a, b, a, fa, fb, fa, b - a, b - a), 0)
    _, b, c, _, fb, *_, k = lax.while_loop(going, step, start)
    done = (fb == 0) | (pnp.abs(0.5 * (c - b)) <= delta(b))
    status = pnp.where(valid, pnp.where(done, 0, 1), 2)
    return b, (k, k + 2, status)


def _oriented(a: Any, b: Any, c: Any, fa: Any, fb: Any, fc: Any, d: Any, e: Any) -> tuple[Any, ...]:
    """The root is between ``b`` and ``c``, and the value at ``b`` is the smaller one."""
    same = (fb > 0) == (fc > 0)
    c, fc = pnp.where(same, a, c), pnp.where(same, fa, fc)
    d, e = pnp.where(same, b - a, d), pnp.where(same, b - a, e)
    swap = pnp.abs(fc) < pnp.abs(fb)
    a, fa = pnp.where(swap, b, a), pnp.where(swap, fb, fa)
    b, c, fb, fc = (
        pnp.where(swap, c, b), pnp.where(swap, b, c), pnp.where(swap, fc, fb),
        pnp.where(swap, fb, fc),
    )  # fmt: skip
    a, fa = pnp.where(swap, c, a), pnp.where(swap, fc, fa)
    return a, b, c, fa, fb, fc, d, e


def _open(
    name: str, fun: Callable[[Any], Any], first: Callable[[Any], Any],
    second: Callable[[Any], Any], a: Any, b: Any, xtol: Any, rtol: Any, maxiter: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Newton's, Halley's and the secant method."""

    def going(s: Any) -> Any:
        _, _, _, _, done, failed, k = s
        return ~done & ~failed & (k < maxiter)

    def step(s: Any) -> Any:
        before, f_before, x, fx, _, _, k = s
        if name == "secant":
            rise = (fx - f_before) / pnp.where(x == before, 1, x - before)
        else:
            rise = first(x)
        flat = rise == 0
        move = fx / pnp.where(flat, 1, rise)
        if name == "halley":
            bend = 1 - 0.5 * move * second(x) / pnp.where(flat, 1, rise)
            move = move / pnp.where(bend == 0, 1, bend)
        new = x - pnp.where(flat, 0, move)
        f_new = fun(new)
        done = (f_new == 0) | (pnp.abs(new - x) <= xtol + rtol * pnp.abs(new))
        failed = (flat & (fx != 0)) | ~pnp.isfinite(f_new)
        return x, fx, new, f_new, done & ~failed, failed, k + 1

    x = b if name == "secant" else a
    fa, fx = fun(a), fun(x)
    start = (a, fa, x, fx, fx == 0, ~pnp.isfinite(fx), 0)
    *_, x, _, done, failed, k = lax.while_loop(going, step, start)
    return x, (k, k + 2, pnp.where(done, 0, pnp.where(failed, 3, 1)))
