"""Scalar types, limits, classes and promotion of dtypes."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import ShapeDtypeStruct, enable_x64
from primax_core.extend import dtypes

NAMES = (
    "bool int1 int2 int4 int8 int16 int32 int64 uint1 uint2 uint4 uint8 uint16 uint32 uint64 "
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu bfloat16 float16 "
    "float32 float64 complex64 complex128"
).split()
KNOWN = {d.name for d in dtypes.all_dtypes}
ALIASES = {
    "bool_": "bool", "int_": "int64", "uint": "uint64", "single": "float32", "double": "float64",
    "float_": "float64", "csingle": "complex64", "cdouble": "complex128", "complex_": "complex128",
}  # fmt: skip


@pytest.mark.optimised  # the flags of other tests make XLA abort for float6 (jaxlib 0.10)
@pytest.mark.parametrize("name", [n for n in NAMES if n in KNOWN])
def test_scalar_types(name: str) -> None:
    kind = getattr(pnp, name)
    dtype = np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
    assert kind.dtype == dtype and np.dtype(kind) == dtype
    assert kind == dtype.type and kind == dtype and hash(kind) == hash(dtype.type)
    assert kind != np.int8 or name == "int8"
    assert kind != name
    assert isinstance(dtype.type(0 if name == "int1" else 1), kind)
    assert repr(kind) == f"<class 'primax.numpy.{name}'>"
    assert pickle.loads(pickle.dumps(kind)) is kind
    with enable_x64(True):
        try:
            one = kind(0 if name == "int1" else 1)
        except (
            RuntimeError
        ) as e:  # older versions of jaxlib have these types, but cannot compile them
            assert name.startswith("float6") and "PrimitiveType" in str(e)
            return
        assert one.dtype == dtype and one.shape == () and not one.weak_type
        assert kind([0, 0] if name != "float8_e8m0fnu" else [1, 1]).shape == (2,)
    with pytest.raises(TypeError):
        kind()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in KNOWN])
def test_types_missing_in_ml_dtypes_raise_errors(name: str) -> None:
    with pytest.raises(TypeError, match=f"has no {name}: install a newer one"):
        pnp.zeros(2, getattr(pnp, name))
    with pytest.raises(TypeError, match=f"has no {name}"):
        getattr(pnp, name)(1)


def test_aliases() -> None:
    for alias, name in ALIASES.items():
        assert getattr(pnp, alias) is getattr(pnp, name)


def test_64_bit_scalars_without_x64() -> None:
    with pytest.warns(UserWarning, match="dtype float64 requested in asarray is not available"):
        assert pnp.float64(1).dtype == np.float32
    with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
        pnp.uint8(300)


def test_abstract_classes_are_those_of_numpy() -> None:
    for name in (
        "generic number integer signedinteger unsignedinteger inexact floating complexfloating "
        "flexible character object_ dtype"
    ).split():
        assert getattr(pnp, name) is getattr(np, name)
    assert pnp.ComplexWarning is np.exceptions.ComplexWarning
    assert pnp.issubdtype(pnp.bfloat16, pnp.floating)
    assert pnp.issubdtype(pnp.int4, pnp.signedinteger)
    assert pnp.issubdtype(pnp.ones(2), pnp.floating) and pnp.issubdtype(float, pnp.inexact)
    assert not pnp.issubdtype("bfloat16", np.float32)


def test_limits() -> None:
    assert pnp.iinfo(pnp.int4).max == 7 and pnp.iinfo("uint8").min == 0
    assert pnp.iinfo(int).bits == 64
    assert pnp.finfo(pnp.bfloat16).eps == 2.0**-7
    assert pnp.finfo("float8_e4m3fn").max == 448 and pnp.finfo(pnp.complex64).dtype == np.float32
    for bad in (pnp.bool_, pnp.float32):
        with pytest.raises(ValueError, match="Invalid integer"):
            pnp.iinfo(bad)
    with pytest.raises(ValueError, match="int8"):
        pnp.finfo(pnp.int8)


KINDS: list[tuple[Any, Any, bool]] = [
    ("bool", "bool", True),
    ("int8", "signed integer", True),
    ("int4", "signed integer", True),
    ("uint8", "signed integer", False),
    ("uint2", "unsigned integer", True),
    ("int32", "integral", True),
    ("bfloat16", "real floating", True),
    ("complex64", "real floating", False),
    ("complex64", "complex floating", True),
    ("complex64", "numeric", True),
    ("bool", "numeric", False),
    ("float32", np.float32, True),
    ("float32", pnp.float32, True),
    ("float32", "float32", True),
    ("float32", ("bool", "real floating"), True),
    ("float32", (np.float64, "integral"), False),
    (np.ones(2, np.float32), "real floating", True),
    (dtypes.float0, "bool", False),
]


@pytest.mark.parametrize(("dtype", "kind", "expected"), KINDS)
def test_isdtype(dtype: Any, kind: Any, expected: bool) -> None:
    assert pnp.isdtype(dtype, kind) is expected


def test_unknown_kinds() -> None:
    with pytest.raises(ValueError, match="Unrecognized kind='sound'"):
        pnp.isdtype("float32", "sound")
    for bad in (1, np.floating, None):
        with pytest.raises(TypeError, match="Expected kind to be a dtype, string, or tuple"):
            pnp.isdtype("float32", bad)


def test_casts() -> None:
    assert pnp.can_cast("int8", pnp.float32) and not pnp.can_cast("float32", "int8")
    assert pnp.can_cast("float32", "float16", casting="same_kind")
    with pytest.raises(ValueError, match="casting must be one of"):
        pnp.can_cast("int8", "int8", "loose")


def test_numbers_in_texts_and_objects_are_read_if_the_dtype_is_named() -> None:
    cases: list[tuple[Any, Any]] = [
        (["1.5", "-2e3", "nan"], np.float32),
        (["1.5", 2.0], np.float16),
        ([["1"], [b"2"]], np.complex64),
        (np.array(["7", "-8"]), np.int32),
        (np.array([1.5, 2, "3"], object), np.float32),
        ("12", np.uint8),
        (b"0.5", np.float32),
    ]
    for value, dtype in cases:
        actual = pnp.array(value, dtype)
        assert actual.dtype == dtype and not actual.weak_type
        np.testing.assert_array_equal(actual, np.array(value, dtype))
    assert pnp.asarray(["1.5", "3"], ml_dtypes.bfloat16).tolist() == [1.5, 3.0]
    assert pnp.float32(["0.1"]).tolist() == [np.float32("0.1")]
    assert pnp.asarray(np.empty((0, 3), object), np.float32).shape == (0, 3)
    rows = np.empty(2, object)
    rows[:] = [[1.0], [2.0]]
    with pytest.raises(ValueError, match=r"are sequences, and make an array of shape \(2, 1"):
        pnp.asarray(rows, np.float32)
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        pnp.array(["a"], np.float32)
    with pytest.raises(OverflowError, match="300 out of bounds for int8"):
        pnp.array(["300"], np.int8)
    for value in (["1.5"], "1.5", np.array([1.5], object)):
        with pytest.raises(TypeError, match="not a valid Primax array type"):
            pnp.array(value)


def test_promotion() -> None:
    assert pnp.promote_types("int8", "uint8") == np.int16
    assert pnp.promote_types("uint64", "int8") == np.float64
    assert pnp.promote_types(int, "int8") == np.int8
    assert pnp.result_type(np.int8(1), 2.0) == np.float32
    assert pnp.result_type("bfloat16", 2.0) == pnp.bfloat16
    assert pnp.result_type(pnp.ones(2), np.float64(1)) == np.float32
    assert pnp.result_type(1, None) == np.float32
    with pytest.raises(ValueError, match="at least one array or dtype"):
        pnp.result_type()
    with pytest.raises(ValueError, match="no available implicit dtype promotion path"):
        pnp.promote_types("int4", "float16")


def test_python_types_mean_default_dtypes_without_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pnp.zeros(2, float).dtype == np.float32
        assert pnp.zeros(2, int).dtype == np.int32


def test_result_type_of_a_description() -> None:
    with enable_x64(False), pytest.warns(UserWarning, match="will be truncated to dtype int32"):
        assert pnp.result_type(ShapeDtypeStruct((2,), "int64")) == np.int32
    with enable_x64(True):
        assert pnp.result_type(ShapeDtypeStruct((2,), "int64"), np.int8) == np.int64
