"""Derivatives of solutions by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import primax_numpy as pnp
from primax_core import grad, jacfwd, lax
from primax_core.extend import typeof


def root_with_derivative(
    residual: Callable[[Any], Any], x0: Any, solve: Callable[[Any], tuple[Any, Any]]
) -> tuple[Any, Any]:
    """A root of a function of a vector or number, with derivatives, and auxiliary results.

    Args:
      residual: the function that is zero at the root.
      x0: the initial guess.
      solve: computes the root and auxiliary results from the guess.
    """

    def tangent_solve(linear: Any, right: Any) -> Any:
        if not typeof(right).ndim:
            return right / linear(pnp.ones_like(right))
        return pnp.linalg.solve(jacfwd(linear)(pnp.zeros_like(right)), right)

    x, aux = lax.custom_root(residual, x0, lambda _, guess: solve(guess), tangent_solve, True)
    return x, aux


def minimum_with_derivative(
    fun: Callable[[Any], Any], x0: Any, solve: Callable[[Any], tuple[Any, Any]],
    bounds: tuple[Any, Any] | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """A minimum, with derivatives: the gradient, or the distance from an active bound, is zero."""

    def stationary(x: Any) -> Any:
        g = grad(fun)(x)
        if bounds is None:
            return g
        low, high = bounds
        moved = x - g
        return pnp.where(moved <= low, x - low, pnp.where(moved >= high, x - high, g))

    return root_with_derivative(stationary, x0, solve)
