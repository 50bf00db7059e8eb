"""Kernel density estimation with normal kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import primax_numpy as pnp
from primax_core import lax, tree_util
from primax_core.extend import Array
from primax_numpy import random
from primax_numpy.exponentials import logsumexp

from .._functions import promoted_floats
from ..special import ndtr


@tree_util.register_pytree_node_class
class gaussian_kde:
    """Density estimate: the mean of normal densities around the points of a data set.

    The covariance of each is that of the data, times the square of a factor (D. W. Scott,
    "Multivariate density estimation", 1992). The estimate is a pytree of arrays.

    Args:
      dataset: ``float[d, n]``, or ``float[n]`` for ``d = 1``.
      bw_method: the factor: ``"scott"`` (the default), ``n^(-1 / (d + 4))``; ``"silverman"``,
        ``(n (d + 2) / 4)^(-1 / (d + 4))``; a number, or a function of the estimate. With weights,
        ``n`` is the effective number of points.
      weights: ``float[n]``; they are divided by their sum.

    Attributes:
      neff: the effective number of points.
      dataset, weights, covariance, inv_cov: arrays.

    Raises:
      ValueError: for data of one point, weights of another shape, or an unknown method.

    >>> import numpy as np
    >>> estimate = gaussian_kde(np.float32([-1, 0, 1]))
    >>> print(estimate.pdf(np.float32([0])).round(4))
    [0.3182]
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        dataset = pnp.atleast_2d(dataset)
        if dataset.dtype.kind == "c":
            raise NotImplementedError("gaussian_kde: complex data is not supported.")
        (dataset,) = promoted_floats("gaussian_kde", dataset)
        d, n = dataset.shape
        if n < 2:
            raise ValueError(f"gaussian_kde: the dataset has {n} points; it needs at least 2.")
        if weights is None:
            weights = pnp.full((n,), 1 / n, dataset.dtype)
        else:
            if pnp.shape(weights) != (n,):
                raise ValueError(
                    f"gaussian_kde: weights have shape {pnp.shape(weights)}; the dataset needs "
                    f"({n},), one for each point."
                )
            weights = lax.convert_element_type(pnp.asarray(weights), dataset.dtype)
            weights = weights / pnp.sum(weights)
        self.dataset, self.weights = dataset, weights
        self.neff = 1 / pnp.sum(lax.square(weights))
        factor = _factor(self, d, bw_method)
        mean = pnp.sum(dataset * weights[None, :], 1, keepdims=True)
        centred = dataset - mean
        spread = pnp.matmul(centred * weights[None, :], centred.T) / (1 - 1 / self.neff)
        self.covariance = spread * lax.square(factor)
        self.inv_cov = pnp.linalg.inv(spread) / lax.square(factor)

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.dataset.shape[1])

    def tree_flatten(self) -> Any:
        """Arrays of the estimate, and ``None``."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> gaussian_kde:
        """The estimate of these arrays."""
        out = object.__new__(cls)
        out.neff, out.dataset, out.weights, out.covariance, out.inv_cov = children
        return out

    def _points(self, points: Any) -> Any:
        points = pnp.atleast_2d(points)
        d, m = points.shape
        if d != self.d and d == 1 and m == self.d:
            points = pnp.reshape(points, (self.d, 1))
        elif d != self.d:
            raise ValueError(
                f"gaussian_kde: points have {d} dimensions, the dataset has {self.d}: pass an "
                f"array of shape ({self.d}, m)."
            )
        return lax.convert_element_type(points, self.dataset.dtype)

    def evaluate(self, points: Any) -> Array:
        """Density at points ``float[d, m]``; ``float[m]``."""
        out: Array = lax.exp(self.logpdf(points))
        return out

    __call__ = evaluate
    pdf = evaluate

    def logpdf(self, x: Any) -> Array:
        """Logarithm of the density at points ``float[d, m]``; ``float[m]``."""
        points = self._points(x)
        return _log_densities(points, self.dataset, self.weights, self.covariance)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """Integral of the density times a normal density.

        Args:
          mean: ``float[d]``.
          cov: ``float[d, d]``.

        Raises:
          ValueError: if shapes do not match the data.
        """
        mean, cov = pnp.atleast_1d(mean), pnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"gaussian_kde: mean does not have dimension {self.d}: {mean.shape}.")
        if cov.shape != (self.d, self.d):
            raise ValueError(
                f"gaussian_kde: covariance does not have dimension {self.d}: {cov.shape}."
            )
        dtype = self.dataset.dtype
        mean, cov = (lax.convert_element_type(v, dtype) for v in (mean, cov))
        log = _log_densities(mean[:, None], self.dataset, self.weights, self.covariance + cov)
        return lax.exp(log)[0]

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """Integral of the density from ``low`` to ``high``, of data of one dimension.

        Raises:
          ValueError: for data of several dimensions.
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        root = lax.sqrt(self.covariance[0, 0])
        dtype = self.dataset.dtype
        low, high = (lax.convert_element_type(pnp.asarray(v), dtype) for v in (low, high))
        ends = [ndtr((end - self.dataset[0]) / root) for end in (low, high)]
        return pnp.sum(self.weights * (ends[1] - ends[0]))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Integral of the product with another estimate of the same dimension.

        Raises:
          ValueError: if the dimensions differ.
        """
        if other.d != self.d:
            raise ValueError(f"gaussian_kde: estimates have dimensions {self.d} and {other.d}.")
        few, many = (self, other) if self.n < other.n else (other, self)
        logs = _log_densities(
            few.dataset, many.dataset, many.weights, self.covariance + other.covariance
        )
        return pnp.sum(few.weights * lax.exp(logs))

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Array:
        """Integral over a box.

        Raises:
          NotImplementedError: always, as in the reference; `integrate_box_1d` has one dimension.
        """
        raise NotImplementedError(
            "gaussian_kde.integrate_box is not supported: use integrate_box_1d for one dimension."
        )

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Change the factor.

        Raises:
          NotImplementedError: always: estimates are immutable.
        """
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth is not supported, because estimates are immutable: make "
            "another one with bw_method."
        )

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Samples of the density, ``float[d, *shape]``.

        Args:
          key: a random key.
        """
        first, second = random.split(key)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        index = random.choice(first, self.n, shape, p=self.weights)
        noise = random.normal(second, (self.d, *shape), self.dataset.dtype)
        factor = lax.linalg.cholesky(self.covariance)
        return self.dataset[:, index] + pnp.tensordot(factor, noise, 1)


def _factor(estimate: gaussian_kde, d: int, method: Any) -> Any:
    """The factor of the standard deviation of kernels."""
    if method is None or method == "scott":
        return lax.exp(lax.log(estimate.neff) * (-1 / (d + 4)))
    if isinstance(method, str):
        if method != "silverman":
            raise ValueError(
                f"gaussian_kde: unknown bw_method {method!r}: pass 'scott', 'silverman', a number "
                "or a function."
            )
        return lax.exp(lax.log(estimate.neff * ((d + 2) / 4)) * (-1 / (d + 4)))
    value: Any = method(estimate) if isinstance(method, Callable) else method  # type: ignore[arg-type]
    if pnp.ndim(value):
        raise ValueError(
            "gaussian_kde: bw_method must be a number, 'scott', 'silverman' or a function."
        )
    return lax.convert_element_type(pnp.asarray(value), estimate.dataset.dtype)


def _log_densities(points: Any, dataset: Any, weights: Any, covariance: Any) -> Any:
    """Logarithm of weighted normal densities around the data, at points ``[d, m]``."""
    d = dataset.shape[0]
    factor = lax.linalg.cholesky(covariance)
    scaled, centres = (
        lax.linalg.triangular_solve(factor, v, left_side=True, lower=True)
        for v in (points, dataset)
    )
    gaps = scaled[:, :, None] - centres[:, None, :]
    logs = -0.5 * pnp.sum(lax.square(gaps), 0)
    constant = 0.5 * d * math.log(2 * math.pi) + pnp.sum(lax.log(pnp.diagonal(factor)))
    return logsumexp(logs, 1, b=weights[None, :]) - constant
