"""Scalar types: dtypes that make arrays when they are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import Array, dtypes

from ._creation import asarray


class _ScalarMeta(type):
    dtype: np.dtype[Any]

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


bool_: Any = _scalar_type(np.bool_)
int8: Any = _scalar_type("int8")
int16: Any = _scalar_type("int16")
int32: Any = _scalar_type("int32")
int64: Any = _scalar_type("int64")
uint8: Any = _scalar_type("uint8")
uint16: Any = _scalar_type("uint16")
uint32: Any = _scalar_type("uint32")
uint64: Any = _scalar_type("uint64")
bfloat16: Any = _scalar_type(dtypes.bf16)
float16: Any = _scalar_type("float16")
float32: Any = _scalar_type("float32")
float64: Any = _scalar_type("float64")
complex64: Any = _scalar_type("complex64")
complex128: Any = _scalar_type("complex128")
