"""Linear regression of one variable."""

from __future__ import annotations

from typing import Any

import primax_numpy as pnp
from primax_core import lax, tree_util
from primax_core.typing import ArrayLike
from primax_numpy.declaring import compiled

from ..special import betainc
from ._alternatives import check_alternative, check_pairs, symmetric_pvalue, two_samples
from ._pairs import _Pair
from ._policies import check_policy


@tree_util.register_pytree_node_class
class LinregressResult(_Pair):
    """Result of :func:`linregress`; it unpacks to five values, without the last attribute.

    Attributes:
      slope: the derivative of the line.
      intercept: its value at 0.
      rvalue: Pearson's correlation.
      pvalue: the p-value of the hypothesis that this derivative is 0.
      stderr: the standard error of ``slope``.
      intercept_stderr: the standard error of the intercept.
    """

    _fields = ("slope", "intercept", "rvalue", "pvalue", "stderr", "intercept_stderr")
    _unpacked = 5
    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any
    intercept_stderr: Any


@compiled("alternative", name="linregress")
def _linregress(x, y, *, alternative):
    n = x.shape[-1]
    x_mean, y_mean = pnp.mean(x, -1), pnp.mean(y, -1)
    right, up = x - x_mean[..., None], y - y_mean[..., None]
    width, height = (pnp.sum(lax.square(v), -1) for v in (right, up))
    joint = pnp.sum(right * up, -1)
    slope = joint / width
    constant = height == 0
    size = pnp.sqrt(width * pnp.where(constant, pnp.ones_like(height), height))
    r = pnp.clip(pnp.where(constant, pnp.full_like(joint, pnp.nan), joint / size), -1, 1)
    intercept = y_mean - slope * x_mean
    if n == 2:
        # The line passes through both points.
        zero = pnp.where(slope == slope, pnp.zeros_like(slope), slope)
        return slope, intercept, r, pnp.where(constant, 1 + zero, zero), zero, zero
    half = pnp.full_like(r, 0.5 * n - 1)
    p = symmetric_pvalue(lambda v: betainc(half, half, 0.5 * (1 - v)), r, alternative)
    residuals = pnp.sum(lax.square(up - slope[..., None] * right), -1)
    exact = residuals == 0
    error = pnp.sqrt(pnp.where(exact, pnp.ones_like(residuals), residuals) / width / (n - 2))
    error = pnp.where(exact, pnp.zeros_like(error), error)
    return slope, intercept, r, p, error, error * pnp.sqrt(width / n + lax.square(x_mean))


def linregress(
    x: ArrayLike,
    y: ArrayLike,
    alternative: str = "two-sided",
    *,
    axis: int | None = 0,
    nan_policy: str = "propagate",
) -> LinregressResult:
    """Regression line of pairs, ``y = a * x + b``, by least squares.

    Args:
      x, y: real numbers, paired along the axis; other axes broadcast.
      alternative: of the factor ``a``: ``"two-sided"``, ``"less"`` (negative) or ``"greater"``.
      axis: an axis, or None for all elements.
      nan_policy: ``"propagate"``.

    Returns:
      A :class:`LinregressResult` of floats without the axis, differentiable. It is NaN if all
      ``x`` are equal, and ``rvalue`` and ``pvalue`` are if all ``y`` are. The errors of two pairs,
      or of points on a line, are 0 with the derivative 0. The p-value of two pairs is 0 or 1.

    Raises:
      ValueError: for an unknown alternative, samples of different sizes, or fewer than two pairs.
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.

    The p-value is that of Wald's test with the t distribution, which is that of the correlation.

    >>> import numpy as np
    >>> line = linregress(np.float32([0, 1, 2, 3]), np.float32([1, 3, 4, 8]))
    >>> round(float(line.slope), 4), round(float(line.intercept), 4), round(float(line.pvalue), 4)
    (2.2, 0.7, 0.0352)
    """
    check_alternative("linregress", alternative)
    check_policy("linregress", nan_policy)
    x, y = two_samples("linregress", x, y, axis)
    check_pairs("linregress", x, y, 2)
    return LinregressResult(*_linregress(x, y, alternative=alternative))
