"""Derivatives of eigenpairs of Hermitian operators by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import dtypes, typeof
from primax_numpy.declaring import is_complex

from ._minres import minres
from ._vectors import product

_Product = Callable[[Any], Any]


def _identity(x: Any) -> Any:
    return x


def with_derivatives(
    apply: _Product, w: Any, v: Any, metric: _Product | None = None
) -> tuple[Any, Any]:
    """Eigenpairs of ``A v = w B v`` with derivatives with respect to the arrays that ``apply`` and
    ``metric``, products with vectors, close over.

    Args:
      w, v: eigenvalues ``[k]``, and eigenvectors ``[n, k]`` with ``v^H B v = 1``.

    The derivative of a pair solves the bordered Hermitian system
      ``(A - w B) dv - dw B v = ...``, ``v^H B dv = ...`` by minimal residuals. It exists for
      eigenvalues of multiplicity 1. The phase of an eigenvector is that of ``v``.
    """
    metric = _identity if metric is None else metric
    w, v = lax.stop_gradient(w), lax.stop_gradient(v)
    dtype = typeof(v).dtype
    tolerance = float(dtypes.finfo(dtype).eps) ** 0.75

    def pair(w0: Any, v0: Any) -> tuple[Any, Any]:
        border = lax.stop_gradient(metric(v0))

        def residual(x: Any) -> Any:
            value, vector = x
            return 1 - product(border, vector), apply(vector) - value * metric(vector)

        def solve(linear: Any, right: Any) -> Any:
            return minres(linear, right, tol=tolerance)[0]

        start = lax.convert_element_type(w0, dtype), v0
        value, vector = lax.custom_root(residual, start, lambda _, x: x, solve)
        size = product(vector, metric(vector))
        size = lax.sqrt(lax.real(size) if is_complex(size) else size)
        value = lax.real(value) if is_complex(value) else value
        return value, vector / lax.convert_element_type(size, dtype)

    return vmap(pair, (0, 1), (0, 1))(w, v)


def ordered(w: Any, v: Any, order: Any) -> tuple[Any, Any]:
    """Eigenpairs in another order."""
    return w[order], pnp.take(v, order, axis=1)
