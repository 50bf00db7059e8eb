"""Convolution and correlation of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, inexact, one_call, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike

from ._checks import check_arrays
from ._functions import compiled

_MODES = ("full", "same", "valid")


@one_call("mode")
def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Discrete convolution of two vectors: sums of ``a[k] * v[i - k]``. Integers become floats.

    Args:
      a, v: nonempty vectors of shapes ``(m,)`` and ``(n,)``.
      mode: ``"full"`` returns all ``m + n - 1`` sums, ``"same"`` the middle ``max(m, n)`` of them,
        ``"valid"`` those where the two vectors overlap completely.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.

    Returns:
      A vector of the promoted dtype.

    Raises:
      ValueError: if a shape or the mode is invalid.

    >>> convolve(np.float32([1, 2, 3]), np.float32([0, 1]))
    Array([0., 1., 2., 3.], dtype=float32)
    """
    _check("convolve", a, v, mode)
    return _slid(a, v, mode=mode, flip=True, precision=precision,
                 preferred=_preferred(preferred_element_type))  # fmt: skip


@one_call("mode")
def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Cross-correlation of two vectors: sums of ``a[i + k] * conj(v[k])``. Integers become floats.

    Args:
      a, v: nonempty vectors of shapes ``(m,)`` and ``(n,)``.
      mode: ``"valid"`` (the default), ``"same"`` or ``"full"``, as for :func:`convolve`.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.

    Returns:
      A vector of the promoted dtype.

    Raises:
      ValueError: if a shape or the mode is invalid.

    >>> correlate(np.float32([1, 2, 3]), np.float32([0, 1]))
    Array([2., 3.], dtype=float32)
    """
    _check("correlate", a, v, mode)
    return _slid(a, v, mode=mode, flip=False, precision=precision,
                 preferred=_preferred(preferred_element_type))  # fmt: skip


def _preferred(dtype: Any) -> Any:
    return None if dtype is None else dtypes.canonicalize_dtype(dtype)


def _check(name: str, a: Any, v: Any, mode: str) -> None:
    check_arrays(name, a, v)
    shapes = typeof(a).shape, typeof(v).shape
    if any(len(s) != 1 for s in shapes):
        raise ValueError(
            f"{name}() only support 1-dimensional inputs, got shapes {shapes[0]} and {shapes[1]}"
        )
    if any(s == (0,) for s in shapes):
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {shapes[0]} and {shapes[1]}.")
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {list(_MODES)}, got {mode!r}")


@compiled("mode", "flip", "precision", "preferred", name="convolve")
def _slid(a, v, *, mode, flip, precision, preferred):
    a, v = promoted("convolve", a, v, inexact)
    if not flip and dtypes.issubdtype(typeof(v).dtype, np.complexfloating):
        v = lax.conj(v)
    m, n = typeof(a).shape[0], typeof(v).shape[0]
    # The shorter vector is the kernel. Swapping the operands of a correlation reverses the result.
    swapped = n > m
    if swapped:
        a, v, m, n = v, a, n, m
    if flip:
        v = lax.rev(v, (0,))
    before = {"full": n - 1, "same": n // 2, "valid": 0}[mode]
    after = {"full": n - 1, "same": n - 1 - n // 2, "valid": 0}[mode]
    out = lax.conv_general_dilated(
        lax.reshape(a, (1, 1, m)), lax.reshape(v, (1, 1, n)), (1,), [(before, after)],
        precision=precision, preferred_element_type=preferred,
    )  # fmt: skip
    out = lax.reshape(out, typeof(out).shape[2:])
    return lax.rev(out, (0,)) if swapped and not flip else out
