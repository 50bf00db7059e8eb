"""Kolmogorov and Smirnov's test of two samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import is_operand
from primax_core.typing import ArrayLike
from primax_numpy.declaring import compiled

from ._alternatives import check_alternative, check_choice, check_size, two_samples
from ._goodness import ks_1samp, two_sided_tail
from ._pairs import KstestResult
from ._policies import check_policy

# The largest sample for which the exact distribution is computed by "auto"
_LARGE: Final = 10_000


def _exact(distance: Any, n: int, m: int, two_sided: bool, dtype: Any) -> Any:
    """The probability of a distance of at least an integer, in units of the least common multiple.

    Each order of the elements of both samples is a path in a grid, and has the same probability.
    The probabilities of places at which the distance is smaller so far follow from those one
    element earlier; the sum of those that are lost is the result, all of whose terms are positive
    (J. L. Hodges, "The significance probability of the Smirnov two-sample test", Arkiv för
    Matematik 3, 1958).
    """
    whole = math.lcm(n, m)
    i = np.arange(n + 1)
    height = whole // n * i

    def step(state: Any, k: Any) -> Any:
        inside, lost = state
        left = (n + m - k).astype(dtype)
        right = inside * (pnp.asarray(n - i, dtype) / left)
        up = inside * (pnp.maximum(m - (k - i), 0).astype(dtype) / left)
        after = up + pnp.concatenate([pnp.zeros((1,), dtype), right[:-1]])
        gap = height - whole // m * (k + 1 - i)
        far = (pnp.abs(gap) if two_sided else gap) >= distance
        lost = lost + pnp.sum(pnp.where(far, after, pnp.zeros_like(after)))
        return (pnp.where(far, pnp.zeros_like(after), after), lost), None

    start = pnp.zeros((n + 1,), dtype).at[0].set(1), pnp.zeros((), dtype)
    places = pnp.arange(n + m, dtype=np.int32)
    (_, lost), _ = lax.scan(step, start, places)
    return pnp.where(distance <= 0, pnp.ones_like(lost), pnp.minimum(lost, 1))


def _asymptotic(d: Any, n: int, m: int, two_sided: bool) -> Any:
    """The probability for large samples; of one sign by Hodges' correction (equation 5.3)."""
    size = n * m / (n + m)
    if two_sided:
        return two_sided_tail(d, max(1, round(size)))
    n, m = max(n, m), min(n, m)
    z = math.sqrt(size) * d
    shift = 2 * (n + 2 * m) / math.sqrt(n * m * (n + m)) / 3
    return pnp.minimum(pnp.exp(-2 * lax.square(z) - shift * z), 1)


def _one(x: Any, y: Any, alternative: str, exact: bool) -> Any:
    n, m = x.shape[0], y.shape[0]
    both = pnp.concatenate([pnp.sort(x), pnp.sort(y)])
    first, second = (
        pnp.searchsorted(v, both, side="right").astype(np.int32)
        for v in (both[:n], both[n:])
    )  # fmt: skip
    whole = math.lcm(n, m)
    dtype = np.int32 if whole < 2**31 else both.dtype
    gaps = first.astype(dtype) * (whole // n) - second.astype(dtype) * (whole // m)
    up, down = pnp.argmax(gaps), pnp.argmin(gaps)
    if alternative == "two-sided":
        upper = gaps[up] >= -gaps[down]
    else:
        upper = pnp.full((), alternative == "greater")
    at = pnp.where(upper, up, down)
    distance = pnp.maximum(pnp.where(upper, gaps[at], -gaps[at]), 0)
    d = distance.astype(both.dtype) / whole
    two_sided = alternative == "two-sided"
    if exact:
        p = _exact(distance, min(n, m), max(n, m), two_sided, both.dtype)
    else:
        p = _asymptotic(d[None], n, m, two_sided)[0]
    missing = pnp.isnan(both[n - 1]) | pnp.isnan(both[-1])
    d, p, place = (pnp.where(missing, pnp.full_like(v, np.nan), v) for v in (d, p, both[at]))
    return d, p, place, pnp.where(upper, 1, -1)


@compiled("alternative", "exact", name="ks_2samp")
def _ks_2samp(x, y, *, alternative, exact):
    batch = x.shape[:-1]
    rows = (pnp.reshape(v, (math.prod(batch), v.shape[-1])) for v in (x, y))
    outs = vmap(lambda a, b: _one(a, b, alternative, exact))(*rows)
    return tuple(pnp.reshape(v, batch) for v in outs)


def ks_2samp(
    data1: ArrayLike,
    data2: ArrayLike,
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: int | None = 0,
    nan_policy: str = "propagate",
) -> KstestResult:
    """Kolmogorov and Smirnov's test whether two samples have one continuous distribution.

    The statistic is the largest distance of the empirical distribution functions.

    Args:
      data1, data2: real numbers; axes other than that of elements broadcast.
      alternative: ``"two-sided"``; ``"less"``, the distribution function of the first sample is
        below that of the second, or ``"greater"``, above it.
      method: ``"exact"``, from the number of orders of all elements (Hodges, 1958), which takes
        time ``n m``; ``"asymp"``, the distribution of one sample of ``n m / (n + m)`` elements, and
        Hodges' approximation for one sign; or ``"auto"``, exact for samples of up to 10000.
      axis: an axis, or None for all elements.
      nan_policy: ``"propagate"``.

    Returns:
      A :class:`KstestResult` of floats without the axis. The statistic is piecewise constant: its
      derivative and that of the p-value are zero.

    Raises:
      ValueError: for an unknown alternative or method, an empty sample, or the exact method if the
        least common multiple of sizes is 2³¹ or more.
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.

    >>> import numpy as np
    >>> d, p = ks_2samp(np.float32([1, 2, 5]), np.float32([3, 4, 6, 7]))
    >>> round(float(d), 4), round(float(p), 4)
    (0.6667, 0.4)
    """
    check_alternative("ks_2samp", alternative)
    check_policy("ks_2samp", nan_policy)
    check_choice("ks_2samp", "method", method, ("auto", "exact", "asymp"))
    x, y = two_samples("ks_2samp", data1, data2, axis)
    n, m = x.shape[-1], y.shape[-1]
    check_size("ks_2samp", min(n, m), 1)
    if method == "exact" and math.lcm(n, m) >= 2**31:
        raise ValueError(
            f"ks_2samp: the least common multiple {math.lcm(n, m)} of the sizes {n} and {m} is too "
            "large for method='exact': pass method='asymp'."
        )
    exact = method == "exact" or (method == "auto" and max(n, m) <= _LARGE)
    return KstestResult(*_ks_2samp(x, y, alternative=alternative, exact=exact))


def kstest(
    rvs: ArrayLike,
    cdf: str | Callable[..., Any] | ArrayLike,
    args: tuple[Any, ...] = (),
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: int | None = 0,
    nan_policy: str = "propagate",
) -> KstestResult:
    """As :func:`ks_1samp`, with the name of a distribution or its distribution function; or as
    :func:`ks_2samp`, with a second sample.

    Args:
      rvs: real numbers.
      cdf: the name of a distribution of this module, such as ``"norm"``, a function, or an array.
      args, alternative, method, axis, nan_policy: as for the other function; a second sample has no
        ``args``.

    Raises:
      ValueError: for an unknown name, and as the other function.
      TypeError: for ``args`` with a second sample.

    >>> import numpy as np
    >>> d, p = kstest(np.float32([-1, 0.2, 0.4, 2]), "norm")
    >>> round(float(d), 4), round(float(p), 4)
    (0.3293, 0.6758)
    """
    function: Any = cdf
    options: Any = {"axis": axis, "nan_policy": nan_policy}
    if is_operand(cdf):
        if args:
            raise TypeError(
                f"kstest: args={args!r} are parameters of a distribution, but cdf is a sample: "
                "pass no args."
            )
        return ks_2samp(rvs, function, alternative, method, **options)
    if isinstance(cdf, str):
        from .. import stats

        function = getattr(getattr(stats, cdf, None), "cdf", None)
        if function is None:
            raise ValueError(
                f"kstest: {cdf!r} is no distribution of stats with a function cdf: pass the name "
                "of one, such as 'norm', or a function."
            )
    return ks_1samp(rvs, function, args, alternative, method, **options)
