"""Reinterpretation of the bytes of arrays as another dtype or byte order."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof

from ._checks import dtype_argument
from ._functions import compiled


def view(self: Array, dtype: Any = None, type: None = None) -> Array:
    """The same bytes as elements of another dtype; the size of the last axis may change.

    Booleans are viewed as bytes; bytes viewed as booleans are true if nonzero.

    Args:
      dtype: the new dtype; the array itself is returned for ``None``.
      type: must be ``None``.

    Raises:
      ValueError: if the size of the last axis in bytes is not a multiple of the itemsize.
    """
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    new_dtype = dtype_argument(dtype, "view")
    if new_dtype is None or new_dtype == self.dtype:
        return self
    shape, old, new = self.shape, dtypes.itemsize_bits(self.dtype), dtypes.itemsize_bits(new_dtype)
    if old != new and not shape:
        raise ValueError(
            f"view() of a 0d array of dtype {self.dtype} as {new_dtype}: only possible where the "
            "itemsize is unchanged"
        )
    if old < new and shape[-1] * old % new:
        raise ValueError(
            f"view(): the last axis of an array of shape {shape} and dtype {self.dtype} has "
            f"{shape[-1] * old} bits, which is not a multiple of the {new} bits of {new_dtype}"
        )
    return _view(self, dtype=new_dtype)


@compiled("dtype")
def _view(x, *, dtype):
    if typeof(x).dtype == np.bool_:
        x = lax.convert_element_type(x, np.dtype(np.uint8))
    elif typeof(x).dtype.kind == "c":
        x = _as_floats(x)
    if dtype == np.bool_:
        raw = _cast_bits(x, np.dtype(np.uint8))
        return lax.ne(raw, lax.full_like(raw, 0))
    if dtype.kind == "c":
        parts = _cast_bits(x, np.dtype(f"f{dtype.itemsize // 2}"))
        return _as_complex(parts)
    return _cast_bits(x, dtype)


def _cast_bits(x, dtype: Any):
    """Bitcast along the last axis."""
    aval = typeof(x)
    old, new = dtypes.itemsize_bits(aval.dtype), dtypes.itemsize_bits(dtype)
    if old == new:
        return lax.bitcast_convert_type(x, dtype)
    *outer, n = aval.shape
    if old > new:
        return lax.reshape(lax.bitcast_convert_type(x, dtype), (*outer, n * (old // new)))
    grouped = lax.reshape(x, (*outer, n * old // new, new // old))
    return lax.bitcast_convert_type(grouped, dtype)


def _as_floats(x):
    """Complex numbers as pairs of floats along the last axis."""
    pairs = _pairs(x)
    return pairs if not typeof(x).ndim else lax.reshape(pairs, (*x.shape[:-1], 2 * x.shape[-1]))


def _pairs(x):
    n = typeof(x).ndim
    return lax.concatenate([lax.expand_dims(p, (n,)) for p in (lax.real(x), lax.imag(x))], n)


def _as_complex(x):
    *outer, n = typeof(x).shape
    pairs = lax.reshape(x, (*outer, n // 2, 2))
    axis = len(outer) + 1
    return lax.complex(*[lax.index_in_dim(pairs, i, axis, keepdims=False) for i in (0, 1)])


def byteswap(self: Array) -> Array:
    """The elements with reversed byte order; for complex numbers in each part."""
    dtype = self.dtype
    if dtype.itemsize == 1 or dtypes.itemsize_bits(dtype) < 8:
        return self
    return _byteswap(self)


@compiled()
def _byteswap(x):
    if typeof(x).dtype.kind == "c":
        return lax.complex(_byteswap(lax.real(x)), _byteswap(lax.imag(x)))
    raw = lax.bitcast_convert_type(x, np.dtype(np.uint8))
    return lax.bitcast_convert_type(lax.rev(raw, (raw.ndim - 1,)), typeof(x).dtype)
