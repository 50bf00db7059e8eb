"""Arguments and p-values that tests and correlations share."""

from __future__ import annotations

from typing import Any, Final

import primax_numpy as pnp
from primax_core import lax
from primax_numpy.declaring import check_arrays, one_axis

from .._functions import floats

ALTERNATIVES: Final = ("two-sided", "less", "greater")


def check_choice(name: str, argument: str, value: Any, accepted: tuple[str, ...]) -> None:
    """Check an argument that is one of a few strings.

    Raises:
      ValueError: for another one.
    """
    if value not in accepted:
        names = ", ".join(map(repr, accepted))
        raise ValueError(f"{name}: {argument}={value!r} is unknown: pass one of {names}.")


def check_alternative(name: str, alternative: Any) -> None:
    """Check the argument ``alternative``."""
    check_choice(name, "alternative", alternative, ALTERNATIVES)


def two_samples(name: str, x: Any, y: Any, axis: int | None) -> tuple[Any, Any]:
    """Two samples as floats of one dtype, with their elements along the last axis.

    All elements are one sample if the axis is None.
    """
    check_arrays(name, x, y)
    x, y = floats(name, pnp.asarray(x), pnp.asarray(y))
    if axis is None:
        return pnp.ravel(x), pnp.ravel(y)
    if not (x.ndim and y.ndim):
        raise ValueError(
            f"{name}: samples of shapes {x.shape} and {y.shape} have no axis {axis}: pass arrays "
            "with at least one dimension, or axis=None."
        )
    x, y = (pnp.moveaxis(v, one_axis(axis, v.ndim), -1) for v in (x, y))
    if x.shape[:-1] != y.shape[:-1]:
        batch = lax.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        x, y = (pnp.broadcast_to(v, (*batch, v.shape[-1])) for v in (x, y))
    return x, y


def check_pairs(name: str, x: Any, y: Any, least: int) -> int:
    """The number of pairs of two samples along the last axis.

    Raises:
      ValueError: if their numbers of elements differ, or there are too few.
    """
    n, other = x.shape[-1], y.shape[-1]
    if n != other:
        raise ValueError(
            f"{name}: the samples have {n} and {other} elements: pass as many of one as of the "
            "other, because they are paired."
        )
    check_size(name, n, least)
    return int(n)


def check_size(name: str, n: int, least: int) -> None:
    """Raise ValueError if a sample has too few elements."""
    if n < least:
        raise ValueError(f"{name}: a sample has {n} elements: pass at least {least}.")


def symmetric_pvalue(sf: Any, statistic: Any, alternative: str, *rest: Any) -> Any:
    """The p-value of a statistic whose distribution is symmetric around 0.

    Args:
      sf: the survival function ``sf(statistic, *rest)``.
      statistic: floats.
      alternative: one of `ALTERNATIVES`.
      rest: further arguments of the survival function.
    """
    if alternative == "two-sided":
        return 2 * sf(lax.abs(statistic), *rest)
    return sf(statistic if alternative == "greater" else -statistic, *rest)
