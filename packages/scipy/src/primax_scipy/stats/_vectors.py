"""Distributions of vectors: Dirichlet and multinomial."""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled

from .._elementary import choose
from .._functions import floats
from ..special import gammaln, xlogy


def _in_one_dtype(name: str, *xs: Any) -> list[Any]:
    """Operands promoted to one floating-point dtype, with unchanged shapes."""
    dtype = typeof(floats(name, *[pnp.ravel(x)[:0] for x in xs])[0]).dtype
    return [lax.convert_element_type(x, dtype) for x in xs]


def _column(vector: Any, ndim: int) -> Any:
    """A vector along the first of several axes."""
    return lax.expand_dims(vector, tuple(range(1, ndim)))


@compiled(name="logpdf")
def _dirichlet(x, alpha):
    x, alpha = _in_one_dtype("dirichlet.logpdf", x, alpha)
    if x.shape[0] + 1 == alpha.shape[0]:
        x = pnp.concatenate([x, 1 - pnp.sum(x, 0, keepdims=True)], 0)
    powers = pnp.broadcast_to(_column(alpha - 1, x.ndim), x.shape)
    constant = pnp.sum(gammaln(alpha)) - gammaln(pnp.sum(alpha))
    value = pnp.sum(xlogy(powers, x), 0) - constant
    slack = 1e-10 if x.dtype == np.float64 else 1e-5
    simplex = pnp.all(x >= 0, 0) & (pnp.abs(pnp.sum(x, 0) - 1) < slack)
    value = choose(simplex, value, -np.inf)
    positive = pnp.broadcast_to(pnp.all(alpha > 0), value.shape)
    return choose(positive, choose(pnp.all(x == x, 0), value, np.nan), np.nan)


def dirichlet_logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Log-density; ``-inf`` unless the elements are not negative and have sum 1.

    Args:
      x: ``float[k, ...]`` or ``float[k - 1, ...]``, without the last element.
      alpha: ``float[k]``, positive.

    Returns:
      ``float[...]``, NaN if an element of ``alpha`` is not positive.

    Raises:
      ValueError: if the first axis of ``x`` does not have one of these sizes.
    """
    check_arrays("dirichlet.logpdf", x, alpha)
    shape, parameters = typeof(x).shape, typeof(alpha).shape
    if len(parameters) != 1 or not shape:
        raise ValueError(
            f"dirichlet.logpdf: alpha must be a vector and x must have an axis of its size, got "
            f"shapes {shape} of x and {parameters} of alpha"
        )
    if shape[0] not in (parameters[0], parameters[0] - 1):
        raise ValueError(
            f"dirichlet.logpdf: the first axis of x has size {shape[0]}; it must be "
            f"{parameters[0]} or {parameters[0] - 1}, the size of alpha or one less"
        )
    out: Array = _dirichlet(x, alpha)
    return out


@compiled(name="pdf")
def _dirichlet_density(x, alpha):
    return lax.exp(dirichlet_logpdf(x, alpha))


def dirichlet_pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Density; arguments are those of :func:`dirichlet_logpdf`."""
    check_arrays("dirichlet.pdf", x, alpha)
    out: Array = _dirichlet_density(x, alpha)
    return out


@compiled(name="logpmf")
def _multinomial(x, n, p):
    total = pnp.sum(x, -1)
    (p,) = _in_one_dtype("multinomial.logpmf", p)
    counts, trials = (lax.convert_element_type(v, p.dtype) for v in (x, n))
    shape = lax.broadcast_shapes(counts.shape, p.shape)
    terms = xlogy(pnp.broadcast_to(counts, shape), pnp.broadcast_to(p, shape))
    logs = pnp.sum(terms - pnp.broadcast_to(gammaln(counts + 1), shape), -1)
    batch = lax.broadcast_shapes(logs.shape, trials.shape)
    value = pnp.broadcast_to(logs, batch) + pnp.broadcast_to(gammaln(trials + 1), batch)
    possible = pnp.broadcast_to(pnp.all(x >= 0, -1), batch)
    same = pnp.broadcast_to(total, batch) == lax.convert_element_type(
        pnp.broadcast_to(n, batch), total.dtype
    )
    return choose(possible & same, value, -np.inf)


def multinomial_logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Log-probability of counts; ``-inf`` unless their sum is ``n``.

    Args:
      x: ``int[..., k]``, counts.
      n: ``int[...]``, the number of trials.
      p: ``float[..., k]``, probabilities.

    Raises:
      ValueError: if ``x`` or ``n`` are not integers.
    """
    check_arrays("multinomial.logpmf", x, n, p)
    for name, value in (("x", x), ("n", n)):
        if typeof(value).dtype.kind not in "iu":
            raise ValueError(
                f"multinomial.logpmf: {name} must be of integer dtype, got "
                f"{typeof(value).dtype}: convert with astype(int)"
            )
    out: Array = _multinomial(x, n, p)
    return out


@compiled(name="pmf")
def _multinomial_probability(x, n, p):
    return lax.exp(multinomial_logpmf(x, n, p))


def multinomial_pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probability of counts; arguments are those of :func:`multinomial_logpmf`."""
    check_arrays("multinomial.pmf", x, n, p)
    out: Array = _multinomial_probability(x, n, p)
    return out
