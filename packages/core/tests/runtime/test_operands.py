"""Conversion of operands to arrays."""

import enum
import warnings

import ml_dtypes
import numpy as np
import pytest

from primax_core import typeof
from primax_core._api.transfer import device_put
from primax_core._base.config import enable_x64
from primax_core._ir import dtypes
from primax_core._ir.avals import ShapedArray
from primax_core._runtime.array import default_sharding, put
from primax_core._runtime.buffers import put_raw
from primax_core._runtime.dispatch import as_operand
from primax_core._runtime.jaxlib_versions import JAXLIB_VERSION

MAKERS = {"put": put, "as_operand": as_operand, "device_put": device_put}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


@pytest.mark.parametrize(
    "values",
    [
        np.arange(3, dtype=">f4"),
        np.arange(3, dtype=">i2"),
        np.arange(6.0, dtype=np.float32)[::2],
        np.arange(6.0, dtype=np.float32)[::-2],
        np.arange(6, dtype=np.int32).reshape(2, 3).T,
        np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        np.broadcast_to(np.float32(3), (4, 5)),
        np.arange(4, dtype=">c8")[1::2],
        np.float32(2.5),
        np.zeros((0, 3), np.float16),
        np.arange(4).astype(ml_dtypes.int4).reshape(2, 2).T,
    ],
    ids=["big-endian", "big-endian int", "strided", "reversed", "transposed", "column-major",
         "broadcast", "big-endian complex", "scalar", "empty", "int4"],
)  # fmt: skip
def test_layouts(make, values):
    x = make(values)
    assert x.shape == values.shape and x.dtype.isnative
    assert np.array_equal(np.asarray(x), values)
    assert not x.weak_type and not x.committed


def test_64_bits(make):
    wide = np.array([1.5, 2**40])
    assert make(wide).dtype == np.float32
    assert make(np.array([2**40])).tolist() == [0]
    assert make(np.int64(2**40)).tolist() == 0
    with enable_x64(True):
        assert make(wide).dtype == np.float64 and make(np.int64(2**40)).tolist() == 2**40


def test_user_memory_is_never_shared(make):
    raw = np.zeros(4 * 256 + 64, np.uint8)
    aligned = raw[-raw.ctypes.data % 64 :][: 4 * 256].view(np.float32)
    x = make(aligned)
    aligned[:] = 7
    assert not np.asarray(x).any()


@pytest.mark.parametrize("maker", [as_operand, device_put])
def test_python_numbers(maker):
    for value, dtype in [(1, "int32"), (1.5, "float32"), (2j, "complex64")]:
        x = maker(value)
        assert x.weak_type and x.dtype == dtype and x.item() == value
    assert maker(True).dtype == bool and not maker(True).weak_type
    assert maker(enum.IntEnum("E", "A B").B).item() == 2
    assert maker(-(2**31)).item() == -(2**31)
    with enable_x64(True):
        assert maker(2**40).item() == 2**40
    for value in (2**31, -(2**31) - 1, 2**80):
        with pytest.raises(
            OverflowError, match=f"^Python int {value} too large to convert to int32$"
        ):
            maker(value)


def test_equal_but_distinct_scalars():
    assert [as_operand(v).dtype for v in (1, True, 1.0)] == ["int32", "bool", "float32"]
    assert as_operand(0.0).tobytes() != as_operand(-0.0).tobytes()
    for dtype in (ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn):
        zero, minus = as_operand(dtype(0.0)), as_operand(dtype(-0.0))
        assert zero.tobytes() != minus.tobytes()
    assert as_operand(complex(0.0, -0.0)).tobytes() != as_operand(complex(0.0, 0.0)).tobytes()
    assert np.isnan(float(as_operand(float("nan"))))


@pytest.mark.parametrize(
    "value",
    [np.array("x"), np.array([object()]), np.array([None, 1]), np.datetime64("2020-01-01"),
     np.array(["2020"], "M8[D]"), np.zeros(2, "S3"), np.zeros(2, [("a", int)]), np.void(b"abc"),
     np.zeros(2, "m8[s]")],
    ids=lambda v: str(v.dtype),
)  # fmt: skip
def test_numpy_values_that_are_not_arrays(make, value):
    with pytest.raises(TypeError, match="is not a valid Primax array type"):
        make(value)


@pytest.mark.skipif(np.dtype("longdouble").itemsize == 8, reason="no long double here")
def test_long_double(make):
    with pytest.raises(TypeError, match="not a valid Primax array type"):
        make(np.longdouble(1))


@pytest.mark.parametrize(
    "value", ["abc", b"x", object(), {1, 2}, range(3)], ids=lambda v: type(v).__name__
)
def test_values_that_are_not_arrays(value):
    for maker in (as_operand, device_put):
        with pytest.raises(TypeError, match="not a valid Primax type"):
            maker(value)


def test_masked_arrays_are_refused():
    masked = np.ma.array([1, 2], mask=[False, True])
    for maker in (as_operand, device_put, typeof):
        with pytest.raises(ValueError, match=r"masked arrays are not supported.*filled"):
            maker(masked)


def test_other_subclasses_of_ndarray():
    assert as_operand(np.ones((2, 2)).view(np.recarray)).shape == (2, 2)


def test_float0_is_unchanged():
    zero = np.zeros((2,), dtypes.float0)
    assert device_put(zero) is zero


def test_raw_puts_are_checked():
    values = np.zeros(3, np.float32)
    for shape, dtype in [((2,), np.float32), ((3,), np.int32)]:
        aval = ShapedArray(shape, np.dtype(dtype))
        with pytest.raises(TypeError, match="cannot fill an array of type"):
            put_raw(values, aval, default_sharding())


@pytest.mark.skipif(JAXLIB_VERSION >= (0, 11), reason="newer versions have these types")
def test_dtypes_missing_in_this_jaxlib(make):
    with pytest.raises(TypeError, match="float6_e2m3fn need a newer jaxlib"):
        make(np.zeros(2, ml_dtypes.float6_e2m3fn))


def test_objects_that_convert_themselves():
    class Mine:
        def __jax_array__(self):
            return put(np.arange(2, dtype=np.float32))

    for convert in (as_operand, device_put):
        with pytest.raises(TypeError, match=r"Mine is not an array. It has a method __jax_array__"):
            convert(Mine())


@pytest.mark.parametrize("x", [1e300, 1e300 + 1j, 1j, -0.0, 0, True])
def test_python_numbers_are_narrowed_without_warnings(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array = as_operand(x)
    with np.errstate(over="ignore"):
        expected = np.asarray(x).astype(typeof(x).dtype)
    assert array.weak_type == typeof(x).weak_type and array.dtype == expected.dtype
    assert np.asarray(array).tobytes() == expected.tobytes()
