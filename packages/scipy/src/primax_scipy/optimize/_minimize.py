"""Minimization of functions of vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Tracer, is_operand, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, is_complex

from ._bfgs import bfgs
from ._implicit import minimum_with_derivative
from ._lbfgs import lbfgs
from ._newton import newton_cg, trust_ncg
from ._results import OptimizeResults
from ._simplex import nelder_mead

_LBFGS: Final = ("maxiter", "norm", "gtol", "ftol", "maxcor", "maxls", "maxfun")
_SIMPLEX: Final = ("maxiter", "maxfun", "xatol", "fatol", "adaptive")
_TRUST: Final = ("maxiter", "norm", "gtol", "initial_trust_radius", "max_trust_radius", "eta")

_METHODS: Final[dict[str, tuple[str, Callable[..., OptimizeResults], tuple[str, ...]]]] = {
    "bfgs": ("BFGS", bfgs, ("maxiter", "norm", "gtol", "line_search_maxiter")),
    "l-bfgs-b": ("L-BFGS-B", lbfgs, _LBFGS),
    "l-bfgs-experimental-do-not-rely-on-this": (
        "l-bfgs-experimental-do-not-rely-on-this", lbfgs, (*_LBFGS, "maxgrad"),
    ),
    "newton-cg": ("Newton-CG", newton_cg, ("maxiter", "norm", "gtol", "line_search_maxiter")),
    "trust-ncg": ("trust-ncg", trust_ncg, _TRUST),
    "nelder-mead": ("Nelder-Mead", nelder_mead, _SIMPLEX),
}  # fmt: skip
_BOUNDED: Final = ("l-bfgs-b", "nelder-mead")


def minimize(
    fun: Callable[..., Any], x0: ArrayLike, args: tuple[Any, ...] = (), *, method: str,
    tol: float | None = None, options: Mapping[str, Any] | None = None,
    bounds: ArrayLike | Sequence[Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """A local minimum of a function of a vector, from an initial guess.

    Args:
      fun: ``fun(x, *args)``, with a real scalar value; differentiable except for Nelder-Mead.
      x0: the initial guess, ``float[n]``.
      args: further arguments, as a tuple.
      method: ``"BFGS"``, ``"L-BFGS-B"``, ``"Newton-CG"`` (Hessian-vector products and a line
        search), ``"trust-ncg"`` (a trust region), ``"Nelder-Mead"`` (without derivatives), or
        ``"l-bfgs-experimental-do-not-rely-on-this"``, L-BFGS under the reference's name.
      tol: a synonym of the option ``gtol``; of ``xatol`` and ``fatol`` for Nelder-Mead.
      options: ``maxiter``, the maximum number of steps (200 times ``n``); ``gtol``, the tolerance
        of the gradient norm (1e-5); ``norm``, the order of the norm (infinity); and for

        - BFGS, Newton-CG: ``line_search_maxiter``, the maximum number of trials in a line search;
        - L-BFGS: ``maxcor``, the number of stored moves (10); ``maxls``, the maximum number of
          trials in a line search (20); ``ftol``, the relative decrease of the function at which to
          stop (0); ``maxfun``, the maximum number of evaluations;
        - trust-ncg: ``initial_trust_radius`` (1), ``max_trust_radius`` (1000), ``eta``, the
          smallest accepted ratio of decrease to prediction (0.15);
        - Nelder-Mead: ``xatol``, ``fatol``, tolerances of points and values (1e-4); ``adaptive``,
          parameters for many variables; ``maxfun``.
      bounds: for L-BFGS-B and Nelder-Mead, a pair of arrays or numbers ``(low, high)``, a matrix
        ``[n, 2]``, or a sequence of ``n`` pairs, in which None is no bound.

    Returns:
      An :class:`OptimizeResults`. Without convergence, ``success`` is false and ``status`` is the
      reason.

    The function can be compiled and mapped. ``x`` and ``fun`` are differentiable in ``args`` and in
    arrays that ``fun`` closes over, by the implicit function theorem at the minimum: the derivative
    solves a system with the Hessian, and an active bound moves the variable with the bound. The
    derivative with respect to the guess is zero; other fields have none.

    L-BFGS-B follows the projected two-metric method of Bertsekas (SIAM J. Control Optim. 20, 1982):
    the two-loop recursion for the free variables, and a search along the projected path.

    Raises:
      ValueError: if the method is unknown or takes no bounds, or the bounds are inconsistent.
      TypeError: if an option is unknown, ``args`` is not a tuple, or the guess is not a vector of
        real floats.

    >>> result = minimize(lambda x: ((x - 1) ** 2).sum(), np.zeros(2, np.float32), method="BFGS")
    >>> bool(result.success), result.x.tolist()
    (True, [1.0, 1.0])
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to minimize must be a tuple, got {args!r}")
    key = method.lower() if isinstance(method, str) else None
    if key not in _METHODS:
        names = ", ".join(repr(name) for name, *_ in _METHODS.values())
        raise ValueError(f"Method {method} not recognized: use one of {names}")
    _, solver, known = _METHODS[key]
    settings = dict(options or {})
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise TypeError(
            f"minimize has no option {unknown[0]!r} for the method {method!r}: it has "
            f"{', '.join(known)}"
        )
    x0 = vector_of_floats("minimize", x0)
    if tol is not None:
        for name in ("xatol", "fatol") if key == "nelder-mead" else ("gtol",):
            settings.setdefault(name, tol)
    if "maxgrad" in settings:
        # Each evaluation computes the value and the gradient.
        maxgrad = settings.pop("maxgrad")
        settings["maxfun"] = maxgrad if "maxfun" not in settings else pnp.minimum(
            maxgrad, settings["maxfun"])  # fmt: skip
    box = None
    if bounds is not None:
        if key not in _BOUNDED:
            raise ValueError(
                f"minimize: the method {method!r} takes no bounds: use 'L-BFGS-B' or 'Nelder-Mead'"
            )
        box = box_of("minimize", bounds, x0)
        settings["bounds"] = box
    return _solved(lambda x: fun(x, *args), x0, solver, settings, box)


def _solved(
    fun: Callable[[Any], Any], x0: Any, solver: Callable[..., OptimizeResults],
    settings: dict[str, Any], box: Any,
) -> OptimizeResults:  # fmt: skip
    def solve(guess: Any) -> tuple[Any, Any]:
        out = solver(fun, guess, **settings)
        return out.x, out

    x, out = minimum_with_derivative(fun, lax.stop_gradient(x0), solve, box)
    return out._replace(x=x, fun=fun(x))


def vector_of_floats(name: str, x0: Any) -> Any:
    """The initial guess as an array.

    Raises:
      TypeError: if it is not a vector of real floats.
    """
    check_arrays(name, x0)
    aval = typeof(x0)
    if aval.ndim != 1 or aval.dtype.kind in "iub" or is_complex(x0):
        raise TypeError(
            f"{name} needs a vector of floats as initial guess, got "
            f"{aval.dtype.name}{list(aval.shape)}: flatten it with flatten_util.ravel_pytree"
        )
    return pnp.asarray(x0)


def box_of(name: str, bounds: Any, x0: Any) -> tuple[Any, Any]:
    """Lower and upper bounds in the shape and dtype of the guess.

    Raises:
      ValueError: if the form is unknown, sizes do not match, or a lower bound exceeds the upper.
    """
    n, dtype = typeof(x0).size, typeof(x0).dtype
    low, high = _sides(name, bounds, n)
    sides = []
    for side in (low, high):
        if typeof(side).shape not in ((), (n,)):
            raise ValueError(
                f"{name}: bounds of shape {typeof(side).shape} do not match {n} variables"
            )
        side = lax.convert_element_type(side, dtype)
        sides.append(pnp.broadcast_to(side, (n,)))
    if not any(isinstance(side, Tracer) for side in sides):
        wrong = np.flatnonzero(np.asarray(sides[0]) > np.asarray(sides[1]))
        if len(wrong):
            raise ValueError(
                f"{name}: the lower bound of variable {wrong[0]} exceeds its upper bound: exchange "
                "them"
            )
    return sides[0], sides[1]


def _sides(name: str, bounds: Any, n: int) -> tuple[Any, Any]:
    """The lower and upper bounds. A sequence of lists or tuples consists of pairs."""
    if is_operand(bounds) and typeof(bounds).shape == (n, 2):
        return bounds[:, 0], bounds[:, 1]
    if isinstance(bounds, (list, tuple)):
        if len(bounds) == 2 and all(is_operand(v) for v in bounds):
            return bounds[0], bounds[1]
        if len(bounds) == n and all(isinstance(p, (list, tuple)) and len(p) == 2 for p in bounds):
            columns = [
                pnp.stack([pnp.asarray(default if p[i] is None else p[i], float) for p in bounds])
                for i, default in ((0, -np.inf), (1, np.inf))
            ]
            return columns[0], columns[1]
    raise ValueError(
        f"{name}: bounds must be a pair (low, high) of arrays or numbers, a matrix [{n}, 2] or a "
        f"sequence of {n} pairs"
    )
