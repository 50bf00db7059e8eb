"""Fourier transforms of Hermitian-symmetric arrays along several axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike, ShapeLike
from primax_numpy.declaring import as_inexact, check_arrays, is_complex

_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _inverse_norm(name: str, norm: Any) -> str:
    if norm not in _OPPOSITE:
        raise ValueError(
            f"{name}: norm must be None, 'backward', 'ortho' or 'forward', got {norm!r}"
        )
    return _OPPOSITE[norm]


def hfftn(
    x: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Real spectrum along several axes of a signal that is Hermitian-symmetric.

    Args:
      x: the half of the signal with nonnegative indices along the last of the axes.
      s: the lengths of the result; the last one is by default ``2 * (size - 1)``.
      axes: the axes, by default the last ``len(s)`` ones or all.
      norm: as in `fft`.

    Raises:
      ValueError: if axes do not exist, or the sizes or ``norm`` are invalid.
    """
    check_arrays("hfftn", x)
    x = as_inexact(x)
    x = lax.conj(x) if is_complex(x) else x
    return pnp.fft.irfftn(x, s, axes, _inverse_norm("hfftn", norm))


def ihfftn(
    x: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Inverse of `hfftn`, for real ``x``.

    Raises:
      ValueError: if ``x`` is complex, and as `hfftn`.
    """
    check_arrays("ihfftn", x)
    if is_complex(x):
        raise ValueError(f"ihfftn: x must be real, got dtype {typeof(x).dtype}")
    return lax.conj(pnp.fft.rfftn(x, s, axes, _inverse_norm("ihfftn", norm)))


def hfft2(
    x: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
) -> Array:
    """`hfftn` along two axes."""
    return hfftn(x, s, axes, norm)


def ihfft2(
    x: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Inverse of `hfft2`."""
    return ihfftn(x, s, axes, norm)
