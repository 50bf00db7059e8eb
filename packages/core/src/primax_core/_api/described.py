"""Avals of objects that only describe an array, by the attributes ``shape`` and ``dtype``."""

from __future__ import annotations

from typing import Any

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.symbolic_dims import as_size
from .._trace.foreign import InvalidOperand


def described_aval(x: Any, reason: TypeError) -> ShapedArray:
    """The aval that an object describes.

    Raises:
      TypeError: ``reason``, if it describes none, or is a tracer of another library.
    """
    try:
        shape = tuple([as_size(d) for d in x.shape])
        dtype = None if x.dtype is None else dtypes.canonicalize_dtype(x.dtype)
        dtypes.check_valid_dtype(dtype)
    except (AttributeError, TypeError, ValueError):
        dtype = None
    if dtype is None or isinstance(reason, InvalidOperand):
        raise reason
    return ShapedArray(shape, dtype, bool(getattr(x, "weak_type", False)))
