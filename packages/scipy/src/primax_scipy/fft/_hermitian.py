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
      x: the half of the signal with nonnegative indices along the last of the axes; integers become
        floats.
      s: the lengths of the result; the last one is by default ``2 * (size - 1)``.
      axes: the axes, by default the last ``len(s)`` ones or all.
      norm: None or ``"backward"`` for an unscaled sum, ``"forward"`` to divide by the number of
        elements, ``"ortho"`` by its root.

    Returns:
      An array of real numbers, of the sizes ``s`` along the axes.

    Raises:
      ValueError: if axes do not exist, or the sizes or ``norm`` are invalid.
      TypeError: if ``x`` is not an array or a number.

    >>> import numpy as np
    >>> np.float64(hfftn(np.complex64([1, 2j, 1]))).round(4).tolist()
    [2.0, 4.0, 2.0, -4.0]
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
    """Inverse of `hfftn`: half of a Hermitian-symmetric signal from its real spectrum.

    Args:
      x: a real array; integers become floats.
      s: the lengths to which the axes are truncated or padded with zeros.
      axes: the axes, by default the last ``len(s)`` ones or all.
      norm: None or ``"backward"`` to divide by the number of elements, ``"ortho"`` by its root,
        ``"forward"`` for an unscaled sum.

    Returns:
      An array of complex numbers, with ``size // 2 + 1`` elements along the last of the axes.

    Raises:
      ValueError: if ``x`` is complex, axes do not exist, or the sizes or ``norm`` are invalid.
      TypeError: if ``x`` is not an array or a number.

    >>> import numpy as np
    >>> np.complex128(ihfftn(np.float32([2, 4, 2, -4]))).round(4).tolist()
    [(1-0j), 2j, (1-0j)]
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
    """Real spectrum along two axes of a signal that is Hermitian-symmetric; see `hfftn`.

    Args:
      x: the half of the signal with nonnegative indices along the last of the axes; integers become
        floats.
      s: the lengths of the result; the last one is by default ``2 * (size - 1)``.
      axes: the two axes, the last ones by default.
      norm: None or ``"backward"`` for an unscaled sum, ``"forward"`` to divide by the number of
        elements, ``"ortho"`` by its root.

    Returns:
      An array of real numbers, of the sizes ``s`` along the axes.

    Raises:
      ValueError: if axes do not exist, or the sizes or ``norm`` are invalid.
      TypeError: if ``x`` is not an array or a number.

    >>> import numpy as np
    >>> np.float64(hfft2(np.float32([[1, 2], [3, 4]]))).round(4).tolist()
    [[10.0, -2.0], [-4.0, 0.0]]
    """
    return hfftn(x, s, axes, norm)


def ihfft2(
    x: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Inverse of `hfft2`: half of a Hermitian-symmetric signal from its real spectrum.

    Args:
      x: a real array; integers become floats.
      s: the lengths to which the axes are truncated or padded with zeros.
      axes: the two axes, the last ones by default.
      norm: None or ``"backward"`` to divide by the number of elements, ``"ortho"`` by its root,
        ``"forward"`` for an unscaled sum.

    Returns:
      An array of complex numbers, with ``size // 2 + 1`` elements along the last of the axes.

    Raises:
      ValueError: if ``x`` is complex, axes do not exist, or the sizes or ``norm`` are invalid.
      TypeError: if ``x`` is not an array or a number.

    >>> import numpy as np
    >>> np.float64(ihfft2(np.float32([[10, -2], [-4, 0]])).real).round(4).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return ihfftn(x, s, axes, norm)
