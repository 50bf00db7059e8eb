"""Arithmetic of derivatives along a curve: lists ``[x, x', x'', ...]``, some of them zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

from primax_core.extend import Zero, add_tangents
from primax_core.extend.elementwise import scalar_like
from primax_core.lax import mul


def scaled(x: Any, factor: float) -> Any:
    """A derivative times a number."""
    if type(x) is Zero or factor == 1:
        return x
    return mul(scalar_like(x, factor), x)


def leibniz(
    product: Callable[[Any, Any], Any], u: Sequence[Any], v: Sequence[Any], n: int, zero: Zero
) -> Any:
    """The ``n``-th derivative of a product: the sum of ``C(n, i) product(u[i], v[n - i])``."""
    total: Any = zero
    for i in range(n + 1):
        if type(u[i]) is not Zero and type(v[n - i]) is not Zero:
            total = add_tangents(total, scaled(product(u[i], v[n - i]), comb(n, i)))
    return total


def bilinear(
    product: Callable[[Any, Any], Any], x: Any, y: Any, xs: Sequence[Any], ys: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """A product of two operands, and its derivatives."""
    out = product(x, y)
    u, v = [x, *xs], [y, *ys]
    return out, [leibniz(product, u, v, k, Zero.like(out)) for k in range(1, len(u))]


def by_equation(
    out: Any, xs: Sequence[Any], factor_of: Callable[[list[Any]], Any]
) -> tuple[Any, list[Any]]:
    """A function that is defined by a differential equation, ``y' = h x'``.

    Args:
      out: the value ``y``.
      xs: the derivatives of ``x``.
      factor_of: gives the ``k``-th derivative of ``h``, from ``[y, y', ...]`` up to the ``k``-th.
    """
    ys, hs = [out], []
    zero = Zero.like(out)
    for k in range(len(xs)):
        hs.append(factor_of(ys))
        ys.append(leibniz(mul, hs, xs, k, zero))
    return out, ys[1:]


def is_moving(terms: Sequence[Any]) -> bool:
    """Return True if some derivative is not zero."""
    return any(type(t) is not Zero for t in terms)
