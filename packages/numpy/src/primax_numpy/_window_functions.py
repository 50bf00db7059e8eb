"""Window functions (tapers)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, Tracer, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays
from ._creation import asarray
from ._functions import compiled


def _length(name: str, M: Any) -> int:
    if isinstance(M, Tracer):
        raise TypeError(f"{name}: the length must be concrete: make it a static argument")
    try:
        n = int(M)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: the length must be a finite real number, got {M!r}") from None
    if n < 0:
        raise ValueError(f"{name}: the length must be nonnegative, got {n}")
    return n


def _window(name: str, M: Any, shape: Callable[[np.ndarray], Any]) -> Array:
    """A window as a function of positions from 0 to 1, computed in double precision on the host."""
    n = _length(name, M)
    values = np.ones(n) if n < 2 else shape(np.arange(n) / (n - 1))
    return asarray(values.astype(dtypes.default_float()))


def bartlett(M: float) -> Array:
    """Triangular window of ``M`` samples, zero at both ends.

    Args:
      M: the number of samples, a concrete real scalar; a fraction is discarded.

    Returns:
      A vector of ``M`` numbers of the default float dtype, symmetric about its centre.

    Raises:
      TypeError: if ``M`` is not a concrete real scalar.

    >>> bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("bartlett", M, lambda t: 1 - np.abs(2 * t - 1))


def hanning(M: float) -> Array:
    """Hann window of ``M`` samples, zero at both ends: ``(1 - cos 2 pi t) / 2``.

    Args:
      M: the number of samples, a concrete real scalar; a fraction is discarded.

    Returns:
      A vector of ``M`` numbers of the default float dtype, symmetric about its centre.

    Raises:
      TypeError: if ``M`` is not a concrete real scalar.

    The sample ``i`` has ``t = i / (M - 1)``.

    >>> print(np.abs(np.asarray(hanning(5))).round(2))
    [0.  0.5 1.  0.5 0. ]
    """
    return _window("hanning", M, lambda t: 0.5 - 0.5 * np.cos(2 * np.pi * t))


def hamming(M: float) -> Array:
    """Hamming window of ``M`` samples: ``0.54 - 0.46 cos 2 pi t``.

    Args:
      M: the number of samples, a concrete real scalar; a fraction is discarded.

    Returns:
      A vector of ``M`` numbers of the default float dtype, symmetric about its centre.

    Raises:
      TypeError: if ``M`` is not a concrete real scalar.

    The sample ``i`` has ``t = i / (M - 1)``.

    >>> print(np.asarray(hamming(5)).round(2))
    [0.08 0.54 1.   0.54 0.08]
    """
    return _window("hamming", M, lambda t: 0.54 - 0.46 * np.cos(2 * np.pi * t))


def blackman(M: float) -> Array:
    """Blackman window of ``M`` samples: ``0.42 - 0.5 cos 2 pi t + 0.08 cos 4 pi t``.

    Args:
      M: the number of samples, a concrete real scalar; a fraction is discarded.

    Returns:
      A vector of ``M`` numbers of the default float dtype, symmetric about its centre.

    Raises:
      TypeError: if ``M`` is not a concrete real scalar.

    The sample ``i`` has ``t = i / (M - 1)``.

    >>> print(np.abs(np.asarray(blackman(5))).round(2))
    [0.   0.34 1.   0.34 0.  ]
    """
    return _window(
        "blackman", M, lambda t: 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)
    )


@compiled("M", "dtype")
def _kaiser(beta, *, M, dtype):
    beta = lax.abs(lax.convert_element_type(beta, dtype))
    t = np.linspace(-1.0, 1.0, M) if M > 1 else np.zeros(M)
    root = np.sqrt(np.maximum(1 - t * t, 0))
    spread = lax.broadcast_in_dim(beta, (M,), ())
    # Exponentials are factored out to avoid overflow.
    top = lax.bessel_i0e(lax.mul(spread, root.astype(dtype)))
    ratio = lax.div(top, lax.broadcast_in_dim(lax.bessel_i0e(beta), (M,), ()))
    return lax.mul(ratio, lax.exp(lax.mul(spread, (root - 1).astype(dtype))))


def kaiser(M: float, beta: ArrayLike) -> Array:
    """Kaiser window of ``M`` samples: ``I0(beta sqrt(1 - t^2)) / I0(beta)`` for t from -1 to 1.

    Args:
      M: the number of samples, a concrete real scalar; a fraction is discarded.
      beta: the shape parameter, a scalar; larger values give narrower windows. It may be traced.

    Returns:
      A vector of ``M`` numbers of the default float dtype, symmetric about its centre.

    Raises:
      ValueError: if ``beta`` is not a scalar.

    The function I0 is the modified Bessel function of order 0, see :func:`i0`.

    >>> print(np.asarray(kaiser(3, 2.0)).round(2))
    [0.44 1.   0.44]
    """
    check_arrays("kaiser", beta)
    aval = typeof(beta)
    if aval.ndim:
        raise ValueError(f"kaiser: beta must be a scalar, got shape {aval.shape}")
    window: Array = _kaiser(beta, M=_length("kaiser", M), dtype=dtypes.default_float())
    return window
