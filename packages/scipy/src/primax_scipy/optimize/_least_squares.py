"""Nonlinear least squares, systems of equations, fits of curves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import jacfwd, lax
from primax_core.extend import dtypes, typeof
from primax_core.typing import ArrayLike, PyTree
from primax_numpy.declaring import check_arrays

from ._implicit import minimum_with_derivative, root_with_derivative
from ._minimize import box_of, vector_of_floats
from ._results import message_of

_MESSAGES: Final = {
    -1: "A residual or derivative is not finite.",
    0: "The maximum number of function evaluations is exceeded.",
    1: "`gtol` termination condition is satisfied.",
    2: "`ftol` termination condition is satisfied.",
    3: "`xtol` termination condition is satisfied.",
}


class LeastSquaresResult(NamedTuple):
    """The result of a nonlinear least-squares fit.

    Attributes:
      x: the parameters ``[n]``.
      cost: half of the sum of the (robust) squared residuals.
      fun, jac: the residuals ``[m]`` and their Jacobian ``[m, n]``.
      grad: the gradient of the cost ``[n]``.
      optimality: the largest element of the projected gradient.
      active_mask: -1 or 1 where a lower or upper bound is active, otherwise 0.
      nfev, njev: the numbers of evaluations and Jacobians.
      status: 1, 2, 3 if ``gtol``, ``ftol``, ``xtol`` was reached; 0 if ``max_nfev`` was reached;
        -1 if a residual is not finite.
      success: true if the status is positive.
    """

    x: Any
    cost: Any
    fun: Any
    jac: Any
    grad: Any
    optimality: Any
    active_mask: Any
    nfev: Any
    njev: Any
    status: Any
    success: Any

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(self.status, _MESSAGES)


class RootResult(NamedTuple):
    """A root of a system of equations.

    Attributes:
      x: the root ``[n]``.
      success: true if the equations hold within the tolerance.
      status: 1, or 0 without convergence.
      fun: the values of the equations.
      nfev, njev: the numbers of evaluations and Jacobians.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    nfev: Any
    njev: Any

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(
            self.status, {1: "The solution converged.", 0: "The iteration does not make progress."}
        )


def _huber(z: Any) -> Any:
    safe = pnp.where(z > 1, z, 1)
    return pnp.where(z > 1, 2 * lax.sqrt(safe) - 1, z)


_LOSSES: Final[dict[str, Callable[[Any], Any]]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (lax.sqrt(1 + z) - 1),
    "huber": _huber,
    "cauchy": lax.log1p,
    "arctan": pnp.arctan,
}


def _times(x: Any, y: Any) -> Any:
    return pnp.matmul(x, y, precision=lax.Precision.HIGHEST)


class _State(NamedTuple):
    x: Any
    f: Any
    j: Any
    cost: Any
    damping: Any
    scale: Any
    status: Any
    evaluations: Any
    jacobians: Any


def _weights(f: Any, loss: str, width: Any) -> Any:
    """The factors of residuals that make the gradient that of the robust cost."""
    if loss == "linear":
        return pnp.ones_like(f)
    rho = _LOSSES[loss]
    from_slope = jacfwd(lambda z: rho(z))
    z = (f / width) ** 2
    return lax.sqrt(pnp.maximum(pnp.diagonal(from_slope(z)), 1e-30))


def _cost(f: Any, loss: str, width: Any) -> Any:
    return 0.5 * width * width * pnp.sum(_LOSSES[loss]((f / width) ** 2))


def levenberg_marquardt(
    fun: Callable[[Any], Any], x0: Any, box: Any, loss: str, width: Any,
    tolerances: tuple[Any, Any, Any], limit: Any,
) -> _State:  # fmt: skip
    """The damped iteration of Moré (1978) with scaled variables; with bounds, projected on the box
    (Kanzow, Yamashita and Fukushima, 2004)."""
    ftol, xtol, gtol = tolerances
    dtype, n = typeof(x0).dtype, typeof(x0).size
    jacobian = jacfwd(fun)

    def projected(x: Any, g: Any) -> Any:
        return g if box is None else x - pnp.clip(x - g, *box)

    def prepared(x: Any) -> Any:
        f, j = fun(x), jacobian(x)
        return f, j, _cost(f, loss, width)

    def step(s: _State) -> _State:
        w = _weights(s.f, loss, width)
        f, j = s.f * w, s.j * w[:, None]
        g = _times(f, j)
        free = pnp.ones(n, bool)
        if box is not None:
            free = ~((s.x <= box[0]) & (g > 0)) & ~((s.x >= box[1]) & (g < 0))
        j = pnp.where(free, j, 0)
        # A QR decomposition of the Jacobian above the damping keeps its condition.
        stacked = pnp.concatenate([j, pnp.diag(lax.sqrt(s.damping) * s.scale)])
        q, r = lax.linalg.qr(stacked, full_matrices=False)
        right = _times(pnp.concatenate([f, pnp.zeros(n, dtype)]), q)
        p = -lax.linalg.triangular_solve(r, right[:, None], left_side=True)[:, 0]
        p = pnp.where(free, p, 0)
        x = s.x + p if box is None else pnp.clip(s.x + p, *box)
        move = x - s.x
        change = f + _times(j, move)
        predicted = 0.5 * (pnp.sum(f * f) - pnp.sum(change * change))
        new_f = fun(x)
        cost = _cost(new_f, loss, width)
        ratio = (s.cost - cost) / pnp.where(predicted > 0, predicted, 1)
        good = (ratio > 1e-4) & (predicted > 0) & pnp.isfinite(cost)
        # Nielsen's update of the damping
        cube = (2 * pnp.clip(ratio, -1, 2) - 1) ** 3
        damping = pnp.where(good, s.damping * pnp.maximum(1 / 9, 1 - cube), 4 * s.damping)
        small = (s.cost - cost <= ftol * s.cost) & (predicted <= ftol * s.cost) & (
            pnp.isfinite(cost) & (ratio > 0.25)
        )  # fmt: skip
        size = pnp.linalg.norm(s.x)
        short = pnp.linalg.norm(move) <= xtol * (xtol + size)
        status = pnp.where(short, 3, pnp.where(small, 2, s.status))
        new_j = lax.cond(good, jacobian, lambda _: s.j, x)
        accepted = [pnp.where(good, a, b) for a, b in zip((x, new_f, cost), (s.x, s.f, s.cost))]
        norms = pnp.sqrt(pnp.sum(new_j * new_j, 0))
        return _checked(_State(
            accepted[0], accepted[1], new_j, accepted[2], pnp.clip(damping, 1e-30, 1e30),
            pnp.maximum(s.scale, norms), status, s.evaluations + 1,
            s.jacobians + lax.convert_element_type(good, "int32"),
        ))  # fmt: skip

    def _checked(s: _State) -> _State:
        w = _weights(s.f, loss, width)
        g = _times(s.f * w * w, s.j)
        flat = pnp.max(pnp.abs(projected(s.x, g))) <= gtol
        bad = ~(pnp.isfinite(s.cost) & pnp.all(pnp.isfinite(s.j)))
        return s._replace(status=pnp.where(bad, -1, pnp.where(flat, 1, s.status)))

    x0 = x0 if box is None else pnp.clip(x0, *box)
    f, j, cost = prepared(x0)
    norms = pnp.sqrt(pnp.sum(j * j, 0))
    one = pnp.full((), 1, "int32")
    start = _checked(_State(
        x0, f, j, cost, pnp.full((), 1e-3, dtype), pnp.where(norms > 0, norms, 1),
        pnp.full((), 0, "int32"), one, one,
    ))  # fmt: skip

    def going(s: _State) -> Any:
        return (s.status == 0) & (s.evaluations < limit)

    return lax.while_loop(going, step, start)


def least_squares(
    fun: Callable[..., Any], x0: ArrayLike, bounds: ArrayLike | Sequence[Any] | None = None,
    method: str = "trf", ftol: ArrayLike = 1e-8, xtol: ArrayLike = 1e-8, gtol: ArrayLike = 1e-8,
    loss: str = "linear", f_scale: ArrayLike = 1.0, max_nfev: ArrayLike | None = None,
    args: tuple[Any, ...] = (),
) -> LeastSquaresResult:  # fmt: skip
    """Parameters that minimize the sum of squares of residuals.

    Args:
      fun: ``fun(x, *args)``, residuals ``float[m]``, differentiable in forward mode.
      x0: the initial guess ``float[n]``.
      bounds: a pair ``(low, high)`` of arrays or numbers, or another form of the bounds of
        :func:`minimize`.
      method: ``"trf"``, or ``"lm"`` without bounds and with the linear loss. Both use the method of
        Levenberg and Marquardt; bounds are accepted by projection.
      ftol, xtol, gtol: tolerances of the relative decrease of the cost, of the relative change of
        ``x`` and of the gradient; at least the machine epsilon is used for the first two.
      loss: ``"linear"``, ``"soft_l1"``, ``"huber"``, ``"cauchy"`` or ``"arctan"``.
      f_scale: the residual at which the loss begins to differ from the square.
      max_nfev: the maximum number of evaluations (100 times ``n``).
      args: further arguments, as a tuple.

    Returns:
      A :class:`LeastSquaresResult`. ``x`` is differentiable in ``args`` and in arrays that ``fun``
      closes over, by the implicit function theorem with the exact Hessian of the cost; ``fun`` and
      ``cost``, too.

    Sources: Moré, *The Levenberg-Marquardt algorithm* (1978); Kanzow, Yamashita and Fukushima,
    J. Comput. Appl. Math. 172 (2004); Nielsen (1999) for the damping.

    Raises:
      ValueError: if the method or the loss is unknown, or ``"lm"`` has bounds or another loss.
      TypeError: if the guess is not a vector of floats, or ``args`` is not a tuple.

    >>> fit = least_squares(lambda x: x - np.float32([1, 2]), np.zeros(2, np.float32))
    >>> bool(fit.success), [round(float(v), 4) for v in fit.x]
    (True, [1.0, 2.0])
    """
    if method not in ("trf", "lm"):
        raise ValueError(f"least_squares: unknown method {method!r}: use 'trf' or 'lm'")
    if loss not in _LOSSES:
        raise ValueError(f"least_squares: unknown loss {loss!r}: use one of {list(_LOSSES)}")
    if not isinstance(args, tuple):
        raise TypeError(f"least_squares: args must be a tuple, got {type(args).__name__}")
    if method == "lm" and (bounds is not None or loss != "linear"):
        raise ValueError("least_squares: 'lm' takes no bounds and no loss: use the method 'trf'")
    x0 = vector_of_floats("least_squares", x0)
    dtype = typeof(x0).dtype
    box = None if bounds is None else box_of("least_squares", bounds, x0)
    eps = dtypes.finfo(dtype).eps
    tolerances = (pnp.maximum(ftol, eps), pnp.maximum(xtol, eps), gtol)
    limit = 100 * typeof(x0).size if max_nfev is None else max_nfev
    width = lax.convert_element_type(f_scale, dtype)
    residuals = lambda x: pnp.atleast_1d(lax.convert_element_type(fun(x, *args), dtype))

    def solve(guess: Any) -> tuple[Any, Any]:
        still = None if box is None else tuple(lax.stop_gradient(v) for v in box)
        last = levenberg_marquardt(residuals, guess, still, loss, width, tolerances, limit)
        return last.x, last

    x, last = minimum_with_derivative(
        lambda x: _cost(residuals(x), loss, width), lax.stop_gradient(x0), solve, box
    )
    f = residuals(x)
    gradient = _times(last.f * _weights(last.f, loss, width) ** 2, last.j)
    reduced, mask = gradient, pnp.zeros(typeof(x).shape, "int32")
    if box is not None:
        reduced = last.x - pnp.clip(last.x - gradient, *box)
        mask = pnp.where(last.x <= box[0], -1, pnp.where(last.x >= box[1], 1, 0))
    return LeastSquaresResult(
        x, _cost(f, loss, width), f, last.j, gradient, pnp.max(pnp.abs(reduced)), mask,
        last.evaluations, last.jacobians, last.status, last.status > 0,
    )  # fmt: skip


def root(
    fun: Callable[..., Any], x0: ArrayLike, args: tuple[Any, ...] = (), method: str = "hybr",
    tol: ArrayLike | None = None, options: Mapping[str, Any] | None = None,
) -> RootResult:  # fmt: skip
    """A root of a system of equations.

    Args:
      fun: ``fun(x, *args)``, as many values ``float[n]`` as unknowns.
      x0: the initial guess ``float[n]``.
      args: further arguments, as a tuple.
      method: ``"hybr"`` or ``"lm"``, damped Gauss-Newton steps, which are Newton steps near the
        root; ``"newton"``, undamped Newton steps.
      tol: the tolerance of the largest value relative to the values at the guess (the machine
        epsilon to the power 3/4).
      options: ``maxiter``, the maximum number of evaluations (200 times ``n + 1``).

    The root is differentiable in ``args`` and in arrays that ``fun`` closes over, to any order, by
    the implicit function theorem.

    Raises:
      ValueError: if the method is unknown, or the numbers of equations and unknowns differ.
      TypeError: if an option is unknown.

    >>> out = root(lambda x: x * x - np.float32([1, 4]), np.float32([2, 3]))
    >>> bool(out.success), [round(float(v), 4) for v in out.x]
    (True, [1.0, 2.0])
    """
    if method not in ("hybr", "lm", "newton"):
        raise ValueError(f"root: unknown method {method!r}: use 'hybr', 'lm' or 'newton'")
    unknown = sorted(set(options or {}) - {"maxiter"})
    if unknown:
        raise TypeError(f"root has no option {unknown[0]!r}: it has 'maxiter'")
    if not isinstance(args, tuple):
        raise TypeError(f"root: args must be a tuple, got {type(args).__name__}")
    x0 = vector_of_floats("root", x0)
    dtype, n = typeof(x0).dtype, typeof(x0).size
    limit = (options or {}).get("maxiter", 200 * (n + 1))
    eps = float(dtypes.finfo(dtype).eps)
    tol = eps**0.75 if tol is None else tol

    def values(x: Any) -> Any:
        out = lax.convert_element_type(fun(x, *args), dtype)
        if typeof(out).shape != (n,):
            raise ValueError(
                f"root: fun must return {n} values, one for each unknown; it returned the shape "
                f"{typeof(out).shape}"
            )
        return out

    def solve(guess: Any) -> tuple[Any, Any]:
        if method == "newton":
            return _newton(values, guess, tol, limit)
        last = levenberg_marquardt(
            values, guess, None, "linear", pnp.ones((), dtype), (0.0, eps, 0.0), limit
        )
        scale = pnp.maximum(pnp.max(pnp.abs(values(guess))), 1)
        good = pnp.max(pnp.abs(last.f)) <= tol * scale
        return last.x, (good, last.f, last.evaluations, last.jacobians)

    x, (good, f, count, jacobians) = root_with_derivative(values, lax.stop_gradient(x0), solve)
    return RootResult(x, good, pnp.where(good, 1, 0), f, count, jacobians)


def _newton(fun: Callable[[Any], Any], x0: Any, tol: Any, limit: Any) -> tuple[Any, Any]:
    f0 = fun(x0)
    scale = pnp.maximum(pnp.max(pnp.abs(f0)), 1)

    def going(s: Any) -> Any:
        _, f, k = s
        return (pnp.max(pnp.abs(f)) > tol * scale) & pnp.all(pnp.isfinite(f)) & (k < limit)

    def step(s: Any) -> Any:
        x, f, k = s
        x = x - pnp.linalg.solve(jacfwd(fun)(x), f)
        return x, fun(x), k + 1

    x, f, k = lax.while_loop(going, step, (x0, f0, 0))
    return x, (pnp.max(pnp.abs(f)) <= tol * scale, f, k + 1, k)


def curve_fit(
    f: Callable[..., Any], xdata: PyTree, ydata: ArrayLike, p0: ArrayLike | None = None,
    sigma: ArrayLike | None = None, absolute_sigma: bool = False, *,
    bounds: ArrayLike | Sequence[Any] | None = None, method: str | None = None,
    full_output: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Fit of a function with parameters to data, by nonlinear least squares.

    Args:
      f: ``f(xdata, *parameters)``, values like ``ydata``.
      xdata: passed to ``f``.
      ydata: the data ``float[m]``.
      p0: the initial parameters ``[n]``; by default ones, as many as ``f`` has parameters.
      sigma: standard deviations ``[m]`` or a covariance matrix ``[m, m]`` of the data.
      absolute_sigma: ``sigma`` is not only relative; otherwise the covariance is scaled with the
        variance of the residuals.
      bounds, method, options: as for :func:`least_squares`.
      full_output: also return the :class:`LeastSquaresResult`.

    Returns:
      The parameters and their covariance matrix ``[n, n]``, infinite if there are not more data
      than parameters. Both are NaN without convergence unless ``full_output``.

    Raises:
      ValueError: if the number of parameters is unknown, or sizes do not match.

    >>> x = np.float32([0, 1, 2, 3])
    >>> parameters, _ = curve_fit(lambda x, a, b: a * x + b, x, 2 * x + 1)
    >>> [round(float(p), 3) for p in parameters]
    [2.0, 1.0]
    """
    check_arrays("curve_fit", ydata)
    if p0 is None:
        names = [
            p for p in inspect.signature(f).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
        if len(names) < 2:
            raise ValueError("curve_fit: the number of parameters is unknown: pass p0")
        p0 = np.ones(len(names) - 1, dtypes.default_float())
    p0 = pnp.asarray(p0)
    dtype = np.promote_types(p0.dtype, typeof(ydata).dtype)
    dtype = dtypes.default_float() if dtype.kind in "iub" else dtype
    p0, ydata = (lax.convert_element_type(v, dtype) for v in (p0, ydata))
    m, n = typeof(ydata).size, typeof(p0).size
    weigh = _weighting(sigma, m, dtype)

    def residuals(p: Any) -> Any:
        out = f(xdata, *[p[i] for i in range(n)])
        return weigh(pnp.ravel(lax.convert_element_type(out, dtype) - ydata))

    name = method or ("lm" if bounds is None and "loss" not in options else "trf")
    fit = least_squares(residuals, p0, bounds, name, **options)
    jacobian = jacfwd(residuals)(fit.x)
    inverse = pnp.linalg.pinv(_times(jacobian.T, jacobian), hermitian=True)
    covariance = inverse
    if not absolute_sigma:
        spare = m - n
        factor = pnp.sum(fit.fun**2) / spare if spare > 0 else np.inf
        covariance = inverse * factor if spare > 0 else pnp.full_like(inverse, np.inf)
    if full_output:
        return fit.x, covariance, fit
    nothing = pnp.full((), np.nan, dtype)
    return pnp.where(fit.success, fit.x, nothing), pnp.where(fit.success, covariance, nothing)


def _weighting(sigma: Any, m: int, dtype: Any) -> Callable[[Any], Any]:
    if sigma is None:
        return lambda r: r
    sigma = lax.convert_element_type(sigma, dtype)
    shape = typeof(sigma).shape
    if shape in ((), (m,)):
        return lambda r: r / sigma
    if shape == (m, m):
        factor = lax.linalg.cholesky(sigma)
        return lambda r: lax.linalg.triangular_solve(
            factor, r[:, None], left_side=True, lower=True
        )[:, 0]
    raise ValueError(f"curve_fit: sigma of shape {shape} must have the shape [{m}] or [{m}, {m}]")
