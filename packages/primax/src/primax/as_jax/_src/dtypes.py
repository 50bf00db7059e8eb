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
