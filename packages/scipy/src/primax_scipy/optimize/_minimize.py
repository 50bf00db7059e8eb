"""Minimization of functions of vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax, value_and_grad
from primax_core.extend import typeof
from primax_numpy.declaring import check_arrays, is_complex

from ._line_search import line_search


class OptimizeResults(NamedTuple):
    """The result of a minimization.

    Attributes:
      x: the point ``[n]``.
      success: true if the gradient norm is below the tolerance.
      status: 0; 1 if the maximum number of steps was reached; 3 if no step along the last
        direction decreased the function.
      fun: the value of the function.
      jac: the gradient ``[n]``.
      hess_inv: an approximation of the inverse Hessian ``[n, n]``.
      nfev, njev, nit: the numbers of function evaluations, gradient evaluations and steps.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    inverse: Any
    failed: Any
    evaluations: Any
    steps: Any


_OPTIONS: Final = ("maxiter", "norm", "gtol", "line_search_maxiter")


def minimize(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str,
    tol: float | None = None, options: Mapping[str, Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """A local minimum of a function of a vector, from an initial guess.

    Args:
      fun: ``fun(x, *args)``, a differentiable function with a real scalar value.
      x0: the initial guess, ``float[n]``.
      args: further arguments, as a tuple.
      method: ``"BFGS"``, with a line search for the strong Wolfe conditions.
      tol: a synonym of the option ``gtol``.
      options: ``gtol``, the tolerance of the gradient norm (1e-5); ``norm``, the order of the norm
        (infinity); ``maxiter``, the maximum number of steps (200 times ``n``);
        ``line_search_maxiter``, the maximum number of trials in a line search (10).

    The function can be compiled and mapped. The iteration is not differentiable in reverse mode:
      differentiate the result with ``lax.custom_root`` and the gradient of ``fun``.

    Raises:
      ValueError: if the method is unknown.
      TypeError: if an option is unknown, ``args`` is not a tuple, or the guess is not a vector of
        real floats.

    >>> result = minimize(lambda x: ((x - 1) ** 2).sum(), np.zeros(2, np.float32), method="BFGS")
    >>> bool(result.success), result.x.tolist()
    (True, [1.0, 1.0])
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to minimize must be a tuple, got {args!r}")
    if not isinstance(method, str) or method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized: use 'BFGS'")
    settings = dict(options or {})
    unknown = sorted(set(settings) - set(_OPTIONS))
    if unknown:
        raise TypeError(f"minimize has no option {unknown[0]!r}: it has {', '.join(_OPTIONS)}")
    check_arrays("minimize", x0)
    aval = typeof(x0)
    if aval.ndim != 1 or aval.dtype.kind in "iub" or is_complex(x0):
        raise TypeError(
            f"minimize needs a vector of floats as initial guess, got "
            f"{aval.dtype.name}{list(aval.shape)}: "
            "flatten it with flatten_util.ravel_pytree"
        )
    if tol is not None:
        settings.setdefault("gtol", tol)
    return _bfgs(lambda x: fun(x, *args), pnp.asarray(x0), **settings)


def _bfgs(
    fun: Callable[[Any], Any], x0: Any, maxiter: Any = None, norm: Any = np.inf, gtol: Any = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:  # fmt: skip
    """Algorithm 6.1 of Nocedal and Wright, *Numerical Optimization* (2006)."""
    n = typeof(x0).size
    limit = 200 * n if maxiter is None else maxiter
    evaluate = value_and_grad(fun)

    def small(gradient: Any) -> Any:
        return pnp.linalg.norm(gradient, norm) < gtol

    def going(state: _State) -> Any:
        return ~state.failed & ~small(state.gradient) & (state.steps < limit)

    def step(state: _State) -> _State:
        x, value, gradient, inverse, _, count, steps = state
        direction = -_times(inverse, gradient)
        # The curvature is unknown in the first step.
        size = pnp.where(steps == 0, pnp.linalg.norm(gradient), 1)
        first = 1 / pnp.maximum(size, 1)
        search = line_search(evaluate, x, direction, value, gradient, first, line_search_maxiter)
        move = search.point.step * direction
        return _State(
            x + move, search.point.value, search.point.gradient,
            _updated(inverse, move, search.point.gradient - gradient),
            ~search.decreased, count + search.tries, steps + 1,
        )  # fmt: skip

    value, gradient = evaluate(x0)
    first = _State(x0, value, gradient, pnp.eye(n, dtype=typeof(x0).dtype), False, 1, 0)
    last = lax.while_loop(going, step, first)
    success = small(last.gradient)
    status = pnp.where(success, 0, pnp.where(last.failed, 3, 1))
    return OptimizeResults(
        last.x, success, status, last.value, last.gradient, last.inverse,
        last.evaluations, last.evaluations, last.steps,
    )  # fmt: skip


def _times(x: Any, y: Any) -> Any:
    return pnp.matmul(x, y, precision=lax.Precision.HIGHEST)


def _updated(inverse: Any, move: Any, change: Any) -> Any:
    """The BFGS update of the inverse Hessian; unchanged if the curvature condition fails."""
    curvature = _times(move, change)
    useful = curvature > 0
    rho = 1 / pnp.where(useful, curvature, 1)
    one = pnp.eye(len(move), dtype=typeof(move).dtype)
    left = one - rho * pnp.outer(move, change)
    new = _times(left, _times(inverse, left.T)) + rho * pnp.outer(move, move)
    return pnp.where(useful, new, inverse)
