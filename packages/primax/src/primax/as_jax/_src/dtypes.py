"""Element types."""

from typing import TypeAlias

import numpy as _np

from primax_core.dtypes import *
from primax_core.dtypes import (
    TypePromotionError as TypePromotionError,
    extended as extended,
    finfo as finfo,
    float0 as float0,
    iinfo as iinfo,
    issubdtype as issubdtype,
    prng_key as prng_key,
)
from primax_core.extend import dtypes as _own
from primax_core.typing import DTypeLike as DTypeLike

DType: TypeAlias = _np.dtype
ExtendedDType = _own.ExtendedDType
promote_types = _own.promote_types


def supports_inf(dtype: DTypeLike) -> bool:
    """Return True if a floating-point dtype has an infinity."""
    with _np.errstate(all="ignore"):
        return bool(_np.isinf(_np.asarray(_np.inf).astype(_own.as_dtype(dtype))))


def to_numeric_dtype(dtype: DTypeLike) -> DType:
    """Return the dtype of arithmetic: an integer for booleans, other dtypes unchanged."""
    own = _own.as_dtype(dtype)
    return _np.dtype(_np.int32) if own == _np.bool_ else own


def to_inexact_dtype(dtype: DTypeLike) -> DType:
    """Return the dtype of a division: a float of 32 or 64 bits for integers and booleans."""
    own = _own.as_dtype(dtype)
    if _own.issubdtype(own, _np.inexact):
        return own
    return _np.dtype(_np.float64 if own.itemsize == 8 else _np.float32)


def to_floating_dtype(dtype: DTypeLike) -> DType:
    """Return the dtype of the real part of :func:`to_inexact_dtype`."""
    inexact = to_inexact_dtype(dtype)
    return _np.finfo(inexact).dtype if inexact.kind == "c" else inexact


def to_complex_dtype(dtype: DTypeLike) -> DType:
    """Return the complex dtype with at least the precision of a dtype."""
    wide = to_inexact_dtype(dtype) in (_np.float64, _np.complex128)
    return _np.dtype(_np.complex128 if wide else _np.complex64)
