"""The array class, transfers and interchange compared with the real jax in this process."""

import copy
import itertools
import operator
import pickle

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from primax_core import grad, jit, jvp, linearize, tree, value_and_grad, vjp, vmap
from primax_core._api.transfer import device_get, device_put
from primax_core._base.config import default_device, enable_x64
from primax_core._runtime import devices as our_devices
from primax_core._runtime.dlpack import from_dlpack, is_supported_dtype


class Outcome:
    """The result or exception of a call, compared by text."""

    def __init__(self, fun, *args, classes=True):
        try:
            self.value, self.error = fun(*args), None
        except Exception as e:  # all exceptions are compared
            self.value, self.error = None, e
        self.classes = classes

    def key(self):
        if self.error is None:
            return ("returned", type(self.value).__name__, repr(self.value))
        return ("raised", type(self.error).__name__ if self.classes else "")


def both(value):
    """Create the same array in both libraries."""
    return device_put(value), jax.device_put(value)


def same(fun, value, **options):
    """Check that a function of one array behaves alike in both libraries."""
    ours, theirs = both(value)
    got, expected = Outcome(fun, ours, **options), Outcome(fun, theirs, **options)
    assert got.key() == expected.key(), (value, got.error, expected.error)
    return got, expected


# Values to print and to convert

_random = np.random.RandomState(0)
DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float16, np.float32,
    np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ml_dtypes.int4, ml_dtypes.uint4,
]  # fmt: skip
SHAPES = [
    (),
    (1,),
    (3,),
    (0,),
    (0, 3),
    (2, 0, 3),
    (1, 1),
    (2, 3),
    (2, 3, 4),
    (40,),
    (3, 30),
    (1100,),
]


def sample(shape, dtype):
    scale = 3 if np.dtype(dtype).kind in "iub" or "int" in np.dtype(dtype).name else 10
    values = _random.standard_normal(shape) * scale
    if "uint" in np.dtype(dtype).name:
        values = np.abs(values)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * _random.standard_normal(shape)
    return np.asarray(values).astype(dtype)


SPECIAL = [
    1.0, 2, True, False, 1 + 2j, -0.0, 1e-30, 1.1, float("nan"), float("inf"), -3, 2**31 - 1,
    np.array([1e10, 1e-10]), np.array([np.nan, np.inf, -np.inf]), np.array([1e5, 2e-5, 3]),
    np.array([-0.0, 0.0]), np.arange(14.0), np.arange(13) * 1.25, np.arange(2000.0),
    np.zeros((1000, 3)), np.arange(30) * 1000, np.full((2, 2), 1 + 1e-6),
    np.array([1j, 1e10 + 1e-10j]), np.full(20, 123456.789), np.linspace(0, 1, 7),
]  # fmt: skip
SAMPLES = [*(sample(s, d) for s, d in itertools.product(SHAPES, DTYPES)), *SPECIAL]


# Text


def test_repr_and_str():
    for value in SAMPLES:
        same(repr, value)
        same(str, value)


@pytest.mark.parametrize(
    "options",
    [{"linewidth": 40}, {"linewidth": 120}, {"precision": 3}, {"threshold": 10, "edgeitems": 2},
     {"suppress": True}, {"sign": "+"}, {"floatmode": "fixed"}, {"linewidth": 20}],
    ids=str,
)  # fmt: skip
def test_repr_under_print_options(options):
    with np.printoptions(**options):
        for value in SAMPLES:
            if np.shape(value) != (1100,):
                same(repr, value)


SPECS = ["", ".2f", "d", "g", "e", "10.3f", "+", "s", ">8", "x", "%", ".3", "08.2f", "n"]


@pytest.mark.parametrize("spec", SPECS)
def test_format(spec):
    for value in (v for v in SAMPLES if np.size(v) < 50):
        same(lambda x: format(x, spec), value)


def test_percent_formats():
    for value in (v for v in SAMPLES if np.size(v) < 5):
        for spec in ("%d", "%.2f", "%s", "%r", "%i", "%e", "%x"):
            same(lambda x, spec=spec: spec % x, value)


# Conversions

CONVERSIONS = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "len": len,
    "item": lambda x: x.item(),
    "item 0": lambda x: x.item(0),
    "item -1": lambda x: x.item(-1),
    "item 0 0": lambda x: x.item(0, 0),
    "item tuple": lambda x: x.item((0,)),
    "item out of range": lambda x: x.item(10**6),
    "item float": lambda x: x.item(1.0),
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "numpy": np.asarray,
    "numpy array": np.array,
    "numpy float64": lambda x: np.asarray(x, np.float64) if x.dtype != np.complex64 else 0,
    "numpy scalar": lambda x: np.float32(x) if x.dtype != np.complex64 else 0,
    "hash": hash,
    "iterate": lambda x: [repr(r) for r in x],
    "shape": lambda x: (x.shape, x.dtype, x.ndim, x.size, x.nbytes, x.itemsize, x.weak_type),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "committed": lambda x: (x.committed, x.is_fully_replicated, x.is_fully_addressable),
    "shards": lambda x: x.addressable_shards,
    "global shards": lambda x: x.global_shards,
    "sharding": lambda x: x.sharding,
    "places": lambda x: (x.devices(), x.device, x.platform()),
    "ready": lambda x: (x.is_ready(), x.is_deleted(), x.block_until_ready()),
    "dlpack device": lambda x: tuple(x.__dlpack_device__()),
    "bytes on device": lambda x: x.on_device_size_in_bytes(),
    "set": lambda x: operator.setitem(x, 0, 1),
    "set shape": lambda x: setattr(x, "shape", (1,)),
    "interface": lambda x: x.__array_interface__,
    "clone": lambda x: x.clone(),
    "math": lambda x: __import__("math").floor(x),
    "range": lambda x: range(x),
    "delete": lambda x: (x.delete(), x.is_deleted(), x.delete())[1],
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name):
    for value in (v for v in SAMPLES if np.size(v) < 50):
        same(CONVERSIONS[name], value)


SAME_TEXT = ["bool", "int", "float", "complex", "len", "item", "item out of range"]


@pytest.mark.parametrize("name", SAME_TEXT)
def test_conversion_error_messages(name):
    for value in (v for v in SAMPLES if np.size(v) < 50 and not isinstance(v, complex)):
        ours, theirs = both(value)
        got, expected = Outcome(CONVERSIONS[name], ours), Outcome(CONVERSIONS[name], theirs)
        assert str(got.error) == str(expected.error), value


@pytest.mark.skipif(not hasattr(memoryview, "__buffer__"), reason="Python 3.12 and later")
def test_buffers():
    for value in (v for v in SAMPLES if np.size(v) < 50):
        same(lambda x: (memoryview(x).tobytes(), memoryview(x).readonly), value)
        same(lambda x: (memoryview(x).format, memoryview(x).shape), value)


# Deleted arrays

DELETED = {
    n: CONVERSIONS[n]
    for n in ("bool", "int", "float", "complex", "index", "len", "item", "tolist", "tobytes",
              "numpy", "hash", "pickle", "copy", "deepcopy", "shards", "sharding", "shape",
              "committed", "delete")
}  # fmt: skip


@pytest.mark.parametrize("name", DELETED)
def test_deleted_arrays(name):
    for value in (np.arange(3.0), 1.0, 2, np.float32(1), np.zeros((0, 2))):
        ours, theirs = both(value)
        ours.delete()
        theirs.delete()
        got, expected = Outcome(DELETED[name], ours), Outcome(DELETED[name], theirs)
        assert got.key() == expected.key(), value
        if expected.error is not None and "deleted" in str(expected.error):
            assert str(got.error) == str(expected.error)


@pytest.mark.skipif(jax.__version_info__ < (0, 11), reason="the reference crashes there")
def test_block_until_ready_of_deleted_arrays():
    for ours, theirs in (both(np.arange(3.0)), both(1.0)):
        ours.delete()
        theirs.delete()
        for call in (lambda x: x.block_until_ready(), lambda x: x.is_ready()):
            assert Outcome(call, ours).key() == Outcome(call, theirs).key()


# Transfers


def describe(x):
    """Describe type, weak type and placement of each array in a tree; keep other leaves."""

    def leaf(y):
        if not hasattr(y, "devices"):
            return type(y).__name__, repr(y)
        return str(y.dtype), y.weak_type, y.committed, sorted(d.id for d in y.devices()), repr(y)

    return tree.map(leaf, x)


PUTS = [
    1, 1.0, True, 1j, np.float32(1), np.float64(1), np.int64(2**40), np.arange(3), -(2**31),
    np.arange(6.0)[::2], [1, 2.0], (1, {"a": np.ones(2)}), None, [], (), {"b": None}, np.True_,
    2**31, 2**40, np.array([2**40]), np.array("x"), "abc", b"x", object(), {1, 2}, range(3),
    np.array([object()]), np.datetime64("2020"), np.zeros(2, "S3"), np.zeros(2, [("a", int)]),
]  # fmt: skip


@pytest.mark.parametrize("device", [None, 0, 1])
def test_device_put(device):
    ours, theirs = (None if device is None else lib.devices()[device] for lib in (our_devices, jax))
    for value in PUTS:
        got = Outcome(lambda v: describe(device_put(v, ours)), value)
        expected = Outcome(lambda v: describe(jax.device_put(v, theirs)), value)
        assert got.key() == expected.key(), (value, got.error, expected.error)


def test_device_put_of_arrays():
    for first, second in itertools.product([None, 0, 1], repeat=2):

        def chain(put, lib, value, first=first, second=second):
            for d in (first, second):
                value = put(value, None if d is None else lib.devices()[d])
            return describe(value)

        for value in (1.0, np.arange(3)):
            assert chain(device_put, our_devices, value) == chain(jax.device_put, jax, value)


def test_device_prefixes():
    value = {"a": np.arange(3), "b": (np.arange(2), 1.0)}
    prefixes = [
        lambda d: {"a": d[1], "b": d[2]},
        lambda d: {"a": d[1], "b": None},
        lambda d: {"a": None, "b": (d[1], d[0])},
        lambda d: {"a": d[1]},
        lambda d: (d[1], d[1]),
        lambda d: {"a": d[1], "b": (d[1],)},
        lambda d: "cpu",
        lambda d: 3,
    ]
    for prefix in prefixes:
        ours, theirs = prefix(our_devices.devices()), prefix(jax.devices())
        got = Outcome(lambda p: describe(device_put(value, p)), ours)
        expected = Outcome(lambda p: describe(jax.device_put(value, p)), theirs)
        assert got.key() == expected.key(), prefix


def transformed(lib, device):
    """Results of transformed moves, each with whether both libraries agree on the placement.

    The reference commits gradients even if the value was uncommitted.
    """
    move = lambda x: lib["device_put"](x, device)
    double = lambda x: move(x) * 2.0
    has_device = device is not None
    x = lib["device_put"](np.arange(3, dtype=np.float32))
    one = lib["device_put"](np.float32(3))
    yield True, lib["jit"](double)(x)
    yield True, lib["jit"](double)(lib["device_put"](x, lib["devices"]()[0]))
    yield True, lib["vmap"](move)(x)
    yield True, lib["jvp"](double, (x,), (x,))
    yield has_device, lib["grad"](double)(one)
    yield has_device, lib["value_and_grad"](double)(one)
    yield True, lib["grad"](lib["jit"](double))(one)
    yield True, lib["jit"](lib["grad"](double))(one)
    yield has_device, lib["grad"](lib["grad"](lambda x: double(x) * double(x) * double(x)))(one)
    yield True, lib["linearize"](double, x)[1](x)
    yield has_device, lib["vjp"](double, x)[1](x)
    yield False, lib["vmap"](lib["grad"](double))(x)


OURS = {
    "device_put": device_put, "devices": our_devices.devices, "jit": jit, "vmap": vmap, "jvp": jvp,
    "grad": grad, "value_and_grad": value_and_grad, "linearize": linearize, "vjp": vjp,
}  # fmt: skip
THEIRS = {name: getattr(jax, name) for name in OURS}


@pytest.mark.parametrize("device", [None, 0, 1])
def test_device_put_inside_transformations(device):
    place = lambda lib: None if device is None else lib["devices"]()[device]
    pairs = zip(transformed(OURS, place(OURS)), transformed(THEIRS, place(THEIRS)), strict=True)
    for i, ((same_place, got), (_, expected)) in enumerate(pairs):
        show = describe if same_place else repr
        assert show(got) == show(expected), i


def test_device_get():
    class Convertible:
        def __array__(self, dtype=None, copy=None):
            return np.ones(2)

    for value in [*SAMPLES[:40], 1, 1.5, "text", None, np.ones(2), Convertible()]:
        for first, second in ((device_put, jax.device_put), (lambda x: x, lambda x: x)):
            if first is device_put and isinstance(value, (str, Convertible)):
                continue
            got, expected = device_get(first(value)), jax.device_get(second(value))
            assert type(got) is type(expected) and repr(got) == repr(expected)
            if isinstance(got, np.ndarray):
                assert got.flags.writeable == expected.flags.writeable


def test_default_device():
    def results(lib, default):
        x = lib["device_put"](np.arange(3, dtype=np.float32))
        with default(lib["devices"]()[2]):
            array = lib["device_put"](1.0)
            inside = [array, x * 2.0, lib["jit"](lambda: 1.0)(), lib["device_put"](x)]
            inside.append(lib["device_put"](x, lib["devices"]()[1]) * 2.0)
        return describe([*inside, array, array * 2.0, array + x])

    assert results(OURS, default_device) == results(THEIRS, jax.default_device)


def test_incompatible_devices():
    for lib in (OURS, THEIRS):
        d = lib["devices"]()
        x, y = lib["device_put"](1.0, d[1]), lib["device_put"](1.0, d[2])
        with pytest.raises(ValueError, match=r"Received incompatible devices for .*computation"):
            lib["jit"](lambda a, b: a + b)(x, y)


# Devices


def test_device_errors():
    for name in ("foo", "gpu", "tpu"):
        got, expected = Outcome(our_devices.devices, name), Outcome(jax.devices, name)
        assert got.key() == expected.key()
        assert name == "tpu" or str(got.error) == str(expected.error)
    assert Outcome(our_devices.local_devices, 3).key() == Outcome(jax.local_devices, 3).key()
    assert our_devices.device_count() == jax.device_count()
    assert our_devices.process_indices() == [0]


def test_shardings():
    ours, theirs = both(np.ones((2, 3)))
    a, b = ours.sharding, theirs.sharding
    assert repr(a) == repr(b)
    for name in ("memory_kind", "num_devices", "is_fully_replicated", "is_fully_addressable",
                 "has_addressable_devices"):  # fmt: skip
        assert getattr(a, name) == getattr(b, name), name
    assert a.shard_shape((2, 3)) == b.shard_shape((2, 3))
    assert repr(a.devices_indices_map((2, 3))) == repr(b.devices_indices_map((2, 3)))
    for kind in ("pinned_host", "unpinned_host", "device", "foo"):
        got, expected = Outcome(a.with_memory_kind, kind), Outcome(b.with_memory_kind, kind)
        assert got.key() == expected.key() and str(got.error) == str(expected.error)


# Interchange


def exchangeable():
    return [d for d in DTYPES if is_supported_dtype(d)]


def test_dlpack_between_both():
    for dtype in exchangeable():
        for shape in ((), (3,), (2, 3), (0, 2)):
            value = sample(shape, dtype)
            ours, theirs = both(value)
            from_theirs, from_ours = from_dlpack(theirs), jax.dlpack.from_dlpack(ours)
            assert repr(from_theirs) == repr(from_ours)
            assert from_theirs.dtype == dtype and from_theirs.committed == from_ours.committed
            if ours.size:
                assert from_theirs.unsafe_buffer_pointer() == theirs.unsafe_buffer_pointer()
                assert from_ours.unsafe_buffer_pointer() == ours.unsafe_buffer_pointer()


def test_dlpack_outlives_its_source():
    ours, theirs = both(np.arange(1000, dtype=np.float32))
    from_theirs, from_ours = from_dlpack(theirs), jax.dlpack.from_dlpack(ours)
    ours.delete()
    del theirs
    assert np.array_equal(from_theirs, np.arange(1000))
    assert np.array_equal(from_ours, np.arange(1000))


def test_dlpack_of_numpy():
    whole = np.arange(12, dtype=np.float32).reshape(3, 4)
    for source in (whole, whole.T, np.arange(3), np.ones(3, bool), np.ones(2, "c8"), np.float32(1)):
        got = Outcome(lambda s: describe(from_dlpack(s)), source)
        expected = Outcome(lambda s: describe(jax.dlpack.from_dlpack(s)), source)
        assert got.key() == expected.key(), (source, got.error, expected.error)
    for bad in (object(), 1.0, np.ones(2, ">f4")):
        got, expected = Outcome(from_dlpack, bad), Outcome(jax.dlpack.from_dlpack, bad)
        assert got.key() == expected.key(), bad


def test_requested_copies():
    ours, theirs = both(np.arange(3, dtype=np.float32))
    for options in ({"copy": True}, {"copy": False}, {"copy": None}):
        a, b = from_dlpack(ours, **options), jax.dlpack.from_dlpack(theirs, **options)
        assert describe(a) == describe(b)
        # The reference shares memory even if a copy was requested.
        shared = a.unsafe_buffer_pointer() == ours.unsafe_buffer_pointer()
        assert shared == (options["copy"] is not True)
    for lib, source in ((from_dlpack, ours), (jax.dlpack.from_dlpack, theirs)):
        device = our_devices.devices()[1] if lib is from_dlpack else jax.devices()[1]
        assert lib(source, device=device).device == device
        with pytest.raises(ValueError, match=r"which requires a copy.*however copy=False"):
            lib(source, device=device, copy=False)


def test_arrays_are_interchangeable():
    ours, theirs = both(np.arange(3, dtype=np.float32))
    assert np.array_equal(jnp.asarray(ours), theirs)
    assert np.array_equal(device_put(np.asarray(theirs)), ours)
    assert not isinstance(ours, jax.Array)


def test_64_bits():
    values = [1, 1.5, 2**40, np.arange(3), np.float64(1e300), np.array([2**40]), 1j]
    with enable_x64(True), jax.enable_x64(True):
        for value in values:
            assert describe(device_put(value)) == describe(jax.device_put(value))
            same(repr, value)
