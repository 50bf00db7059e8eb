"""Element types and their promotion."""

import enum
import warnings

import ml_dtypes
import numpy as np
import pytest

from primax_core import dtypes as public
from primax_core._base.config import enable_x64, explicit_x64_dtypes, numpy_dtype_promotion
from primax_core._ir import dtypes
from primax_core._ir.dtypes import bool_, f16, f32, f64, i8, i32, i64, u8, u32, u64

KEY = type(
    "Key", (dtypes.ExtendedDType,), {"type": public.prng_key, "name": "key<x>", "itemsize": 8}
)()


@pytest.fixture
def x64():
    with enable_x64(True):
        yield


# Canonical forms


@pytest.mark.parametrize(
    ("argument", "narrow", "wide"),
    [
        ("int64", i32, i64),
        (np.uint64, u32, u64),
        (float, f32, f64),
        (complex, np.dtype("complex64"), np.dtype("complex128")),
        (bool, bool_, bool_),
        ("int8", i8, i8),
        ("bfloat16", dtypes.bf16, dtypes.bf16),
        (ml_dtypes.int4, np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.int4)),
        (None, f32, f64),
    ],
)
def test_canonicalize(argument, narrow, wide):
    assert public.canonicalize_dtype(argument) == narrow
    with enable_x64(True):
        assert public.canonicalize_dtype(argument) == wide


def test_canonicalize_extended():
    assert public.canonicalize_dtype(KEY, allow_extended_dtype=True) is KEY
    with pytest.raises(ValueError, match="extended dtype"):
        public.canonicalize_dtype(KEY)


def test_defaults():
    defaults = (
        dtypes.default_int,
        dtypes.default_uint,
        dtypes.default_float,
        dtypes.default_complex,
    )
    assert [d().itemsize for d in defaults] == [4, 4, 4, 8]
    with enable_x64(True):
        assert [d().itemsize for d in defaults] == [8, 8, 8, 16]


def test_a_64_bit_dtype_argument_warns():
    with pytest.warns(UserWarning) as caught:
        assert dtypes.canonicalize_user_dtype("float64", "zeros") == f32
    text = str(caught[0].message)
    assert text.startswith(
        "Explicitly requested dtype float64 requested in zeros is not available, and will be "
        "truncated to dtype float32."
    )
    assert caught[0].filename == __file__


def test_explicit_x64_modes(x64):
    assert dtypes.canonicalize_user_dtype("float64", "zeros") == f64
    with enable_x64(False), explicit_x64_dtypes("allow"):
        assert dtypes.canonicalize_user_dtype(np.int64, "zeros") == i64
    with enable_x64(False), explicit_x64_dtypes("error"):
        with pytest.raises(ValueError, match="int64 requested in zeros is not available"):
            dtypes.canonicalize_user_dtype(np.int64, "zeros")


@pytest.mark.parametrize("python_type", [int, float, complex, bool])
def test_python_types_do_not_warn(python_type):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.canonicalize_user_dtype(python_type, "zeros").itemsize <= 8


@pytest.mark.parametrize("bad", ["S3", object, "M8[s]", "U2"])
def test_unsupported_dtypes(bad):
    with pytest.raises(TypeError, match="only number and bool dtypes are supported, got dtype"):
        dtypes.canonicalize_user_dtype(bad, "zeros")


def test_extended_dtype_argument():
    assert dtypes.canonicalize_user_dtype(KEY, "zeros") is KEY


# Python integers


def test_integers_out_of_range():
    dtypes.check_python_int(255, u8)
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        dtypes.check_python_int(300, u8)
    with pytest.raises(OverflowError, match="Python integer 8 out of bounds for int4"):
        dtypes.check_python_int(8, np.dtype("int4"))
    dtypes.check_default_int(2**31 - 1)
    with pytest.raises(OverflowError, match="Python int 2147483648 too large to convert to int32"):
        dtypes.check_default_int(2**31)
    with enable_x64(True):
        dtypes.check_default_int(2**31)


# Values


class Color(enum.IntEnum):
    RED = 1


class Wrapper:
    def __jax_array__(self):
        return np.float32(1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, i32), (1.0, f32), (True, bool_), (np.int8(1), i8), (np.zeros(2), f32), (Color.RED, i32),
     (Wrapper(), f32), ("float16", f16), (float, f32), (KEY, KEY)],
)  # fmt: skip
def test_dtype_of_values(value, expected):
    assert dtypes.dtype(value) == expected


def test_values_without_dtype():
    with pytest.raises(TypeError, match="Cannot determine dtype of"):
        dtypes.dtype(object())
    with pytest.raises(TypeError, match="is not a valid Primax array type"):
        dtypes.dtype(np.array(["a"]))


def test_python_scalars():
    assert all(map(dtypes.is_python_scalar, (True, 1, 1.0, 1j, Color.RED)))
    assert not any(map(dtypes.is_python_scalar, (np.float64(1), np.bool_(True), "1", None)))


def test_weak_types():
    assert dtypes.is_weakly_typed(1)
    assert dtypes.is_weakly_typed(Color.RED)
    assert not dtypes.is_weakly_typed(True)
    assert not dtypes.is_weakly_typed(np.float64(1))


def test_scalar_types():
    assert public.scalar_type_of("bfloat16") is float
    assert public.scalar_type_of(np.uint8(1)) is int
    assert public.scalar_type_of("int2") is int
    assert public.scalar_type_of(True) is bool
    assert public.scalar_type_of(1j) is complex
    with pytest.raises(TypeError, match="Invalid scalar value"):
        public.scalar_type_of(public.float0)


# Classes, limits, names


def test_issubdtype():
    assert public.issubdtype("bfloat16", np.floating)
    assert public.issubdtype("float8_e4m3fn", np.inexact)
    assert not public.issubdtype("bfloat16", np.float32)
    assert not public.issubdtype(np.float32, "bfloat16")
    assert public.issubdtype("uint4", np.unsignedinteger)
    assert not public.issubdtype("uint4", np.signedinteger)
    assert public.issubdtype(int, np.integer)
    assert public.issubdtype(KEY, public.prng_key)
    assert public.issubdtype(KEY, public.extended)
    assert not public.issubdtype(KEY, np.number)
    assert not public.issubdtype("float32", public.extended)
    with pytest.raises(TypeError):
        public.issubdtype(3, 4)


def test_limits():
    assert public.finfo("bfloat16").bits == 16
    assert public.iinfo("int4").max == 7
    assert public.iinfo(int).bits == public.finfo(float).bits == 64


def test_itemsize_bits():
    assert [public.itemsize_bits(d) for d in ("bool", "int4", "float32", "float6_e2m3fn")] == [
        8,
        4,
        32,
        6,
    ]
    with pytest.raises(ValueError, match="None"):
        public.itemsize_bits(None)
    with pytest.raises(ValueError):
        public.itemsize_bits(KEY)


def test_short_names():
    names = ("bool", "int4", "uint8", "bfloat16", "float16", "complex64", "float8_e4m3fn")
    short = [dtypes.short_name(dtypes.as_dtype(n)) for n in names]
    assert short == ["bool", "i4", "u8", "bf16", "f16", "c64", "f8_e4m3fn"]
    assert dtypes.short_name(public.float0) == "float0"
    assert dtypes.short_name(KEY) == "key<x>"


# Promotion


def test_promotion_is_commutative_idempotent_and_never_narrows(x64):
    for a in dtypes.all_dtypes:
        assert dtypes.promote_types(a, a) == a
        for b in dtypes.all_dtypes:
            results = []
            for pair in ((a, b), (b, a)):
                try:
                    results.append(dtypes.promote_types(*pair))
                except public.TypePromotionError:
                    results.append(None)
            assert results[0] == results[1]
            if results[0] is not None:
                assert dtypes.promote_types(results[0], a) == results[0]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("int8", "uint8"), ("int16", False)),
        (("uint32", "int8"), ("int32", False)),
        (("bfloat16", "float16"), ("float32", False)),
        (("int8", 1), ("int8", False)),
        (("int8", 1.0), ("float32", True)),
        ((True, 1), ("int32", True)),
        ((1, 1.0), ("float32", True)),
        (("bfloat16", 1j), ("complex64", False)),
        (("float8_e4m3fn", "int32"), ("float8_e4m3fn", False)),
        (("int4", 1), ("int4", False)),
        ((np.int64(1),), ("int32", False)),
        ((None,), ("float32", False)),
        ((1,), ("int32", True)),
        ((int,), ("int32", True)),
    ],
)
def test_result_type(args, expected):
    dtype, weak = public.result_type(*args, return_weak_type_flag=True)
    assert (dtype.name, weak) == expected
    assert public.result_type(*args) == dtype


def test_unsigned_64_with_signed_gives_a_weak_float(x64):
    assert public.result_type("uint64", "int8", return_weak_type_flag=True) == (f64, True)
    assert public.result_type("uint64", "int8", "float32") == f32


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (
            ("float8_e4m3fn", "float32"),
            "Input dtypes ('float32', 'float8_e4m3fn') have no available implicit dtype "
            "promotion path. Floats of 8 bits and fewer are never promoted to another float; cast "
            "the inputs yourself, for example with x.astype('float32').",
        ),
        (
            ("int4", 1.0),
            "Input dtypes (\"<class 'float'>\", 'int4') have no available implicit dtype "
            "promotion path. 1-bit, 2-bit and 4-bit integers are never promoted; cast the inputs "
            "yourself, for example with x.astype('int32').",
        ),
    ],
)
def test_no_promotion(args, text):
    with pytest.raises(public.TypePromotionError) as info:
        public.result_type(*args)
    assert info.value.args == (text,)
    assert isinstance(info.value, ValueError)


def test_strict_promotion():
    with numpy_dtype_promotion("strict"):
        assert public.result_type("int8", 1) == i8
        assert public.result_type("float16", 1) == f16
        assert public.result_type(1, 1.0) == f32
        for bad in (("int8", "int16"), ("int8", 1.0), (True, 1), ("float32", 1j)):
            with pytest.raises(public.TypePromotionError, match="numpy_dtype_promotion=strict"):
                public.result_type(*bad)


def test_extended_dtypes_promote_only_with_themselves():
    assert dtypes.lattice_result([(KEY, False), (KEY, False)]) == (KEY, False)
    with pytest.raises(ValueError, match="key<x> is not a valid dtype for type promotion"):
        dtypes.lattice_result([(KEY, False), (f32, False)])


def test_promotion_without_operands():
    with pytest.raises(ValueError, match="at least one"):
        public.result_type()


def test_a_64_bit_operand_that_exists_stays_64_bit():
    with explicit_x64_dtypes("allow"):
        assert dtypes.lattice_result([(i64, False), (i32, True)]) == (i64, False)
        assert dtypes.lattice_result([(f64, False), (f32, False)]) == (f64, False)
