"""The array object: attributes, conversions, lifetime, copies, text."""

import copy
import gc
import operator
import pickle
import sys
from collections.abc import Hashable

import ml_dtypes
import numpy as np
import pytest

from primax_core import Array, errors, grad, jit, lax, typeof, vmap
from primax_core._api.transfer import device_put, live_arrays
from primax_core._base.config import enable_x64
from primax_core._ir import dtypes
from primax_core._runtime.array import ArrayImpl, put
from primax_core._runtime.devices import devices


def f32(*shape):
    return put(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape))


def weak(value=1.0):
    return device_put(value)


# Attributes


def test_attributes():
    x = f32(2, 3)
    assert isinstance(x, Array) and type(x).__name__ == "ArrayImpl"
    assert (x.shape, x.dtype, x.ndim, x.size) == ((2, 3), np.float32, 2, 6)
    assert (x.itemsize, x.nbytes, x.weak_type, len(x)) == (4, 24, False, 2)
    assert x.on_device_size_in_bytes() == 24
    assert x.aval is typeof(x)
    assert not hasattr(x, "__array_interface__")


def test_placement():
    x = f32(3)
    device = devices()[0]
    assert x.device is device and x.devices() == {device} and x.platform() == "cpu"
    assert not x.committed
    assert x.is_fully_addressable and x.is_fully_replicated
    assert x.is_ready() and not x.is_deleted()
    assert device_put(x, device).committed


def test_shards():
    x = f32(2, 3)
    (shard,) = x.addressable_shards
    assert shard.device is devices()[0] and shard.replica_id == 0
    assert shard.index == (slice(None), slice(None))
    assert np.array_equal(shard.data, x)
    assert repr(f32().addressable_shards[0]) == (
        "Shard(device=CpuDevice(id=0), index=(), replica_id=0, data=0.0)"
    )
    assert [s.device for s in x.global_shards] == [shard.device]
    assert np.array_equal(x.addressable_data(0), x)
    with pytest.raises(IndexError):
        x.addressable_data(1)


def test_attributes_can_be_set_on_arrays_but_not_on_the_class():
    x = f32(3)
    x.note = "mine"
    assert x.note == "mine"
    with pytest.raises(AttributeError):
        x.shape = (1, 3)


def test_calling_the_class_raises():
    with pytest.raises(TypeError, match="device_put"):
        ArrayImpl()


def test_no_assignment_to_elements():
    x = f32(3)
    with pytest.raises(TypeError, match=r"immutable.*x\.at\[idx\]\.set\(y\)"):
        x[0] = 1.0


def test_weak_references():
    import weakref

    x = f32(3)
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


# Values on the host


def shapes():
    return [(), (3,), (2, 3), (0, 2)]


ALL = [d for d in dtypes.all_dtypes if not d.name.endswith("int1") and "float6" not in d.name]


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", shapes(), ids=str)
def test_every_dtype_is_put_and_read(dtype, shape):
    with enable_x64(True):
        values = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
        x = put(values)
        back = np.asarray(x)
        assert (x.dtype, back.dtype, back.shape) == (dtype, dtype, shape)
        assert back.tobytes() == values.tobytes() == x.tobytes()
        assert not back.flags.writeable
        assert repr(x.tolist()) == repr(values.tolist())
        for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
            assert again is not x and again.aval is x.aval
            assert np.asarray(again).tobytes() == values.tobytes()
        if shape:
            assert repr([r.tolist() for r in x]) == repr(values.tolist())
            assert all(r.dtype == dtype and r.shape == shape[1:] for r in x)
        assert repr(x) and str(x)


def test_arrays_with_more_axes_than_numpy_permits():
    x = lax.full((1,) * 70, 2.0, np.float32)
    assert repr(x) == str(x) == f"Array(shape={x.shape}, dtype=float32)"
    for convert in (np.asarray, ArrayImpl.tolist):
        with pytest.raises(ValueError, match=r"70 axes has no NumPy values.*at most 64 axes.*Resh"):
            convert(x)


def test_conversion_to_numpy():
    x = f32(3)
    assert np.asarray(x, np.int32).dtype == np.int32
    assert np.array(x).flags.writeable
    assert x.__array__(copy=True).flags.writeable
    assert x.__array__(np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, np.float64, copy=False)


def test_a_view_outlives_its_array():
    x = f32(1000)
    view = np.asarray(x)
    x.delete()
    fresh = [put(np.full(1000, 7, np.float32)) for _ in range(50)]
    assert np.array_equal(view, np.arange(1000, dtype=np.float32)) and fresh


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have a buffer from Python 3.12 on")
def test_buffer_protocol():
    x = f32(2, 3)
    view = memoryview(x)
    assert view.readonly and view.shape == (2, 3) and view.format.endswith("f")
    assert bytes(view) == x.tobytes()
    assert memoryview(f32()).shape == ()
    with pytest.raises(BufferError, match="BF16"):
        memoryview(put(np.ones(2, ml_dtypes.bfloat16)))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="on Python 3.11 only NumPy has the buffer")
def test_buffer_through_numpy():
    with pytest.raises(TypeError):
        memoryview(f32(3))
    assert memoryview(np.asarray(f32(3))).readonly


def test_float0_has_no_values():
    x = put(np.zeros((2,), dtypes.float0))
    assert x.dtype == dtypes.float0 and np.asarray(x).dtype == dtypes.float0
    assert np.asarray(pickle.loads(pickle.dumps(x))).shape == (2,)


# Python scalars


@pytest.mark.parametrize(
    "value", [1.5, 2, True, 1 + 2j, np.int8(3), np.float16(2.5), ml_dtypes.bfloat16(2)], ids=repr
)
def test_scalars(value):
    x, plain = device_put(value), np.asarray(value).item()
    assert bool(x) is bool(plain)
    assert complex(x) == complex(plain)
    assert type(x.item()) is type(plain) and x.item() == plain == x.item(0) == x.tolist()
    if isinstance(plain, complex):
        for convert in (int, float):
            with pytest.raises(TypeError, match="complex"):
                convert(x)
    else:
        assert int(x) == int(plain) and float(x) == float(plain)
    if isinstance(plain, int) and not isinstance(plain, bool):
        assert operator.index(x) == plain and [5, 6, 7, 8][x] == 5 + plain
    else:
        with pytest.raises(TypeError, match="Only integer scalar arrays"):
            operator.index(x)


@pytest.mark.parametrize("convert", [int, float, complex])
def test_only_scalars_become_python_scalars(convert):
    with pytest.raises(
        TypeError,
        match=r"^Only scalar arrays can be converted to Python scalars; got arr.ndim=1$",
    ):
        convert(f32(1))


def test_truth():
    assert not f32(1) and put(np.ones((1, 1)))
    with pytest.raises(ValueError, match=r"more than one element is ambiguous. Use a.any\(\)"):
        bool(f32(2))
    with pytest.raises(ValueError, match="empty array is ambiguous"):
        bool(f32(0))


def test_items():
    x = f32(2, 3)
    assert x.item(4) == 4.0 and x.item(1, 2) == 5.0 and x.item(-1) == 5.0
    assert f32(1, 1).item() == 0.0
    with pytest.raises(
        ValueError, match=r"^can only convert an array of size 1 to a Python scalar"
    ):
        x.item()
    with pytest.raises(IndexError):
        x.item(6)


def test_iteration():
    rows = list(f32(3, 2))
    assert [r.shape for r in rows] == [(2,)] * 3 and [r.tolist()[0] for r in rows] == [0, 2, 4]
    a, b = device_put(weak(), devices()[1]), f32(2)
    assert [x.weak_type for x in b] == [False, False]
    committed = device_put(b, devices()[1])
    assert all(x.committed and x.device == devices()[1] for x in committed)
    assert list(f32(0, 3)) == []
    with pytest.raises(TypeError, match=r"^iteration over a 0-d array$"):
        iter(a)
    with pytest.raises(TypeError, match=r"^len\(\) of unsized object$"):
        len(a)


def test_arrays_are_not_hashable():
    with pytest.raises(TypeError, match="unhashable type: 'ArrayImpl'"):
        hash(f32(3))
    assert not isinstance(f32(3), Hashable)  # caches of libraries ask


@pytest.mark.parametrize("transform", [jit, vmap, grad], ids=["jit", "vmap", "grad"])
def test_tracers_are_not_hashable(transform):
    answers = []

    def f(x):
        answers.append(isinstance(x, Hashable))
        with pytest.raises(TypeError, match=r"unhashable type: '[A-Za-z]+Tracer'"):
            hash(x)
        return x

    transform(f)(f32() if transform is grad else f32(3))
    assert answers == [False]


# Copies


def test_copies_keep_type_and_placement():
    w = device_put(1.0, devices()[1])
    for x in (copy.copy(w), copy.deepcopy(w)):
        assert x.weak_type and x.committed and x.device == devices()[1]
        assert x.unsafe_buffer_pointer() != w.unsafe_buffer_pointer()
    w.delete()
    assert float(x) == 1.0


def test_pickles_keep_type_but_not_placement():
    x = pickle.loads(pickle.dumps(device_put(1.0, devices()[1])))
    assert x.weak_type and not x.committed and x.device == devices()[0]


def test_deleting_a_clone_leaves_the_array():
    for x in (put(np.arange(3.0)), put(np.arange(4, dtype=ml_dtypes.int4))):
        expected = np.array(x)
        x.clone().delete()
        assert not x.is_deleted() and np.array_equal(x, expected)
        y = x.clone()
        x.delete()
        assert np.array_equal(y, expected) and x.is_deleted() and not y.is_deleted()


def test_clones_share_memory():
    x = f32(3)
    y = x.clone()
    assert y is not x and y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert y.unsafe_buffer_pointer() == np.asarray(x).ctypes.data


# Text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.arange(3.0), "Array([0., 1., 2.], dtype=float32)"),
        (1.0, "Array(1., dtype=float32, weak_type=True)"),
        (True, "Array(True, dtype=bool)"),
        (np.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float32)"),
        (np.ones(2, ml_dtypes.bfloat16), "Array([1, 1], dtype=bfloat16)"),
        (np.arange(3).astype(ml_dtypes.int4), "Array([0, 1, 2], dtype=int4)"),
        (np.ones((2, 2)), "Array([[1., 1.],\n       [1., 1.]], dtype=float32)"),
        (
            np.arange(14.0),
            "Array([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12.,\n"
            "       13.], dtype=float32)",
        ),
        (np.zeros(1001), "Array([0., 0., 0., ..., 0., 0., 0.], dtype=float32)"),
    ],
    ids=lambda v: "",
)
def test_repr(value, text):
    assert repr(device_put(value)) == text


def test_str_and_format():
    assert str(f32(3)) == "[0. 1. 2.]" and f"{f32(3)}" == "[0. 1. 2.]"
    x = device_put(1.25)
    assert str(x) == "1.25" and f"{x}" == "1.25"
    assert f"{x:.1f}" == "1.2" and "%.2f" % x == "1.25" and "%d" % x == "1"  # noqa: UP031
    with pytest.raises(TypeError, match="unsupported format string"):
        format(f32(3), ".1f")


# Deleted arrays

READERS = {
    "repr": repr,
    "str": str,
    "format": format,
    "numpy": np.asarray,
    "item": lambda x: x.item(0),
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "iterate": list,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "clone": lambda x: x.clone(),
    "shards": lambda x: x.addressable_shards,
    "addressable_data": lambda x: x.addressable_data(0),
    "dlpack": lambda x: x.__dlpack__(),
    "copy_to_host_async": lambda x: x.copy_to_host_async(),
    "device_put": device_put,
    "move": lambda x: device_put(x, devices()[1]),
    "copying device_put": lambda x: device_put(x, may_alias=False),
    "address": lambda x: x.unsafe_buffer_pointer(),
    "bytes on the device": lambda x: x.on_device_size_in_bytes(),
    "is_ready": lambda x: x.is_ready(),
    "block": lambda x: x.block_until_ready(),
}
DELETED = r"^Array has been deleted with shape=float32\[3\]\."


@pytest.mark.parametrize("name", READERS)
def test_a_deleted_array_has_no_values(name):
    x = f32(3)
    x.delete()
    with pytest.raises(RuntimeError, match=DELETED):
        READERS[name](x)


def test_a_deleted_array_has_a_type():
    x = f32(3)
    x.delete()
    x.delete()
    assert x.is_deleted()
    assert (x.shape, x.dtype, len(x), x.device) == ((3,), np.float32, 3, devices()[0])
    with pytest.raises(errors.JaxRuntimeError, match=DELETED):
        x.block_until_ready()


@pytest.mark.parametrize("convert", [bool, int, float, complex])
def test_deleted_scalars(convert):
    x = device_put(1.0)
    x.delete()
    with pytest.raises(RuntimeError, match=r"^Array has been deleted with shape=float32\[\]\.$"):
        convert(x)


# Which arrays exist


def test_live_arrays():
    before = live_arrays()
    x = f32(17)
    arrays = live_arrays()
    assert any(a is x for a in arrays) and len(arrays) == len(before) + 1
    x.delete()
    assert not any(a is x for a in live_arrays("cpu"))
    with pytest.raises(RuntimeError, match="Unknown backend"):
        live_arrays("tpu")
