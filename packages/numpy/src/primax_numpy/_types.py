"""Scalar types: dtypes that make arrays when they are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import Array, dtypes

from ._creation import asarray


class _ScalarMeta(type):
    dtype: np.dtype

    def __call__(cls, x: Any = 0) -> Array:
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: Any) -> bool:
        return cls is other or (not isinstance(other, _ScalarMeta) and cls.dtype == other)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'primax.numpy.{cls.__name__}'>"


def _scalar_type(scalar: Any) -> Any:
    dtype = np.dtype(scalar)
    name = "bool_" if dtype == np.bool_ else dtype.name
    return _ScalarMeta(
        name, (object,), {"dtype": dtype, "__doc__": f"Arrays of dtype {dtype.name}."}
    )


bool_ = _scalar_type(np.bool_)
int8, int16, int32, int64 = (_scalar_type(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_scalar_type(f"uint{n}") for n in (8, 16, 32, 64))
bfloat16 = _scalar_type(dtypes.bf16)
float16, float32, float64 = (_scalar_type(f"float{n}") for n in (16, 32, 64))
complex64, complex128 = (_scalar_type(f"complex{n}") for n in (64, 128))

float0 = dtypes.float0
