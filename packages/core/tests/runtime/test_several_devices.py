"""Arrays and executables on several devices."""

import copy
import gc
import itertools
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from primax_core import (
    ShapeDtypeStruct,
    grad,
    jit,
    lax,
    live_arrays,
    new_ref,
    pure_callback,
    vmap,
)
from primax_core._api.saved_executables import deserialize_and_load, serialize
from primax_core._api.transfer import device_get, device_put
from primax_core._base.config import default_placement
from primax_core._runtime.array import ArrayImpl
from primax_core._runtime.devices import devices
from primax_core._runtime.sharding import SingleDeviceSharding
from primax_core._runtime.tiled_sharding import TiledSharding
from primax_core._runtime.tilings import Tiling


def sharding(mesh, axes, devs=None):
    """A sharding along a mesh of the first devices; ``axes`` divide the axes of the array."""
    n = int(np.prod(mesh))
    return TiledSharding(devices()[:n] if devs is None else devs, Tiling.along_mesh(mesh, axes))


ROWS = sharding((2, 2), [(0,), ()])
COLUMNS = sharding((2, 2), [(), (1,)])
BLOCKS = sharding((2, 2), [(0,), (1,)])
EVERYWHERE = sharding((2, 2), [(), ()])
REVERSED = sharding((2, 2), [(1, 0), ()], devices()[3::-1])
PAIR = sharding((2,), [(0,), ()], devices()[1:3])
ONE = SingleDeviceSharding(devices()[2])
ALL = [ROWS, COLUMNS, BLOCKS, EVERYWHERE, REVERSED, PAIR, ONE]

X = np.arange(32, dtype=np.float32).reshape(4, 8)


def total_of(x):
    return lax.reduce_sum(x, (0, 1))


def check(array, where, expected=X):
    assert array.sharding is where and array.committed
    assert np.array_equal(array, expected) and array.dtype == expected.dtype
    assert {s.device for s in array.addressable_shards} == where.device_set
    for s in array.addressable_shards:
        assert s.data.devices() == {s.device}
        assert np.array_equal(s.data, expected[s.index])


@pytest.mark.parametrize("source, target", list(itertools.product(range(len(ALL)), repeat=2)))
def test_transfers_between_all_shardings(source, target):
    x = device_put(X, ALL[source])
    y = device_put(x, ALL[target])
    check(x, ALL[source])
    check(y, ALL[target])


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "bool", "complex64", "float8_e4m3fn"])
def test_other_dtypes(dtype):
    values = (np.arange(16).reshape(4, 4) % 7).astype(getattr(ml_dtypes, dtype, dtype))
    for where in (ROWS, BLOCKS, PAIR):
        if dtype == "int4":
            pytest.importorskip("jaxlib", minversion="0.11", reason="reads int4 on one device only")
        x = device_put(values, where)
        check(x, where, values)
        check(device_put(x, EVERYWHERE), EVERYWHERE, values)


def test_scalars_and_empty_arrays():
    check(device_put(np.float32(3), EVERYWHERE), EVERYWHERE, np.float32(3))
    empty = np.zeros((0, 4), np.float32)
    check(device_put(empty, BLOCKS), BLOCKS, empty)
    check(device_put(device_put(empty, BLOCKS), ONE), ONE, empty)


def test_parts_stay_valid_after_the_array_is_deleted():
    x = device_put(X, ROWS)
    part = x.addressable_shards[3].data
    view = np.asarray(x.addressable_data(0))
    x.delete()
    del x
    gc.collect()
    assert np.array_equal(part, X[2:]) and np.array_equal(view, X[:2])


def unread(array):
    """Return True if an array is a part that shares the buffer of the whole array."""
    return type(array) is not ArrayImpl


def test_parts_are_read_on_first_use():
    x = jit(lambda x: x * 2)(device_put(X, ROWS))
    parts = [s.data for s in x.addressable_shards]
    assert all(map(unread, parts)) and parts[1] is x.addressable_data(1)
    assert all(isinstance(p, ArrayImpl) and type(p).__name__ == "ArrayImpl" for p in parts)
    part = parts[2]
    assert part.block_until_ready() is part and part.is_ready() and not part.is_deleted()
    assert part.shape == (2, 8) and part.committed and part.devices() == {devices()[2]}
    assert np.array_equal(part, 2 * X[2:]) and part.item(0) == 32.0
    assert not np.asarray(part).flags.writeable
    assert any(part is a for a in live_arrays()) and unread(part)
    assert np.array_equal(part + 1, 2 * X[2:] + 1) and not unread(part)
    assert x.addressable_data(2) is part
    with pytest.raises(IndexError, match="list index out of range"):
        x.addressable_data(4)


def with_unread_part(use):
    x = device_put(X, ROWS)
    part = x.addressable_data(3)
    return use(part), part


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p * 2 - p,
        lambda p: lax.full_like(p, 0) + p,
        lambda p: jit(lambda q: q)(p),
        lambda p: jit(lambda q, n: q, static_argnums=1)(p, 3),
        lambda p: jit(lambda q: q["p"])({"p": p}),
        lambda p: vmap(lambda row: row + 0)(p),
        lambda p: grad(lambda q: total_of(q * q) / 2)(p),
        lambda p: lax.cond(True, lambda q: q, lambda q: q * 2, p),
        lambda p: new_ref(p)[...],
        copy.copy,
        copy.deepcopy,
        lambda p: p.clone(),
        lambda p: device_put(p, p.sharding),
    ],
)
def test_operations_on_unread_parts(use):
    out, part = with_unread_part(use)
    assert np.array_equal(out, X[2:]) and np.array_equal(part, X[2:])
    assert out.devices() == {devices()[3]} and out.committed


def test_conversions_of_unread_parts():
    for use in (np.asarray, device_get, pickle.dumps, str, list, np.from_dlpack):
        with_unread_part(use)
    out, _ = with_unread_part(lambda p: pickle.loads(pickle.dumps(p)))
    assert np.array_equal(out, X[2:])
    out, _ = with_unread_part(np.from_dlpack)
    assert np.array_equal(out, X[2:])
    out, part = with_unread_part(lambda p: p.delete())
    assert part.is_deleted()


def test_donation_keeps_the_parts_in_use():
    x = device_put(X, ROWS)
    part, shards = x.addressable_data(3), x.addressable_shards
    _ = x.addressable_data(1)
    y = jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and np.array_equal(part, X[2:]) and not part.is_deleted()
    assert np.array_equal(y, X + 1)
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[4,8\]"):
        shards[1].data


def test_parts_that_are_not_used_do_not_keep_the_memory():
    x = device_put(X, ROWS) + 0
    (x.addressable_data(0) + 1).block_until_ready()
    taken = weakref.ref(x.addressable_data(0))
    assert taken() is not None
    address = np.asarray(x.addressable_data(1)).ctypes.data
    y = jit(lambda x: x + 1, donate_argnums=0)(x)
    assert taken() is None and x.is_deleted()
    assert np.asarray(y.addressable_data(1)).ctypes.data == address


def test_unread_parts_of_a_buffer_that_another_array_deletes():
    x = device_put(X, ROWS)
    part = x.addressable_data(3)
    same = device_put(x, ROWS)
    same.delete()
    assert x.is_deleted() and part.is_deleted()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[2,8\]"):
        np.asarray(part)
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[2,8\]"):
        part + 1


def test_failed_computations_are_raised_where_parts_are_used():
    def fail(x):
        raise ValueError("no values")

    f = jit(lambda x: pure_callback(fail, ShapeDtypeStruct(X.shape, np.float32), x) + x)
    with pytest.raises(Exception, match="no values"):
        np.asarray(f(device_put(X, ROWS)).addressable_data(1))


def test_parts_in_many_threads():
    x = jit(lambda x: x + 1)(device_put(X, ROWS))
    for _ in range(20):
        x = x + 1
        part = x.addressable_data(2)
        with ThreadPoolExecutor(8) as pool:
            outs = [*pool.map(lambda _, part=part: part * 1, range(16))]
        assert all(np.array_equal(out, part) for out in outs)


def test_reads_of_large_arrays_leave_no_copy():
    values = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)
    for where in (ROWS, BLOCKS, REVERSED):
        x = device_put(values, where) + 0
        read = np.asarray(x)
        assert np.array_equal(read, values) and not read.flags.writeable
        assert read is not np.asarray(x)


def test_sizes_must_divide():
    with pytest.raises(ValueError, match=r"axis 0 of size 3 .* into 2 equal parts"):
        device_put(np.ones((3, 8)), ROWS)
    with pytest.raises(ValueError, match=r"shards arrays of 2 axes, not of 1"):
        device_put(np.ones(4), ROWS)
    with pytest.raises(ValueError, match=r"result: axis 0 of size 3"):
        jit(lambda x: x, out_shardings=ROWS)(np.ones((3, 8)))
    with pytest.raises(ValueError, match=r"result\['b'\]: axis 0 of size 3"):
        jit(lambda x, y: {"a": y, "b": x}, out_shardings=ROWS)(np.ones((3, 8)), X)
    with pytest.raises(ValueError, match=r"device_put of the leaf \['b'\]: axis 0 of size 3"):
        device_put({"a": np.ones((2, 8)), "b": np.ones((3, 8))}, ROWS)
    with pytest.raises(ValueError, match=r"argument x: axis 0 of size 3"):
        jit(lambda x: x, in_shardings=ROWS)(np.ones((3, 8)))


def test_copies_keep_their_sharding():
    x = device_put(X, BLOCKS)
    for y in (copy.copy(x), copy.deepcopy(x), x.clone()):
        check(y, BLOCKS)
        y.delete()
    check(x, BLOCKS)
    assert pickle.loads(pickle.dumps(BLOCKS)) is BLOCKS
    assert np.array_equal(pickle.loads(pickle.dumps(x)), X)
    assert np.array_equal(device_get(x), X)


# Computations


def test_results_have_the_sharding_that_xla_chose():
    x, y = device_put(X, ROWS), device_put(X.T.copy(), COLUMNS)
    out = jit(lambda x, y: lax.dot(x, y) * 2)(x, y)
    assert np.allclose(out, X @ X.T * 2) and out.sharding.is_equivalent_to(BLOCKS, 2)
    assert (x + 1).sharding.is_equivalent_to(ROWS, 2)
    assert lax.transpose(x, (1, 0)).sharding.shard_shape((8, 4)) == (8, 2)


def test_uncommitted_arguments_and_numbers_go_along():
    x = device_put(X, BLOCKS)
    f = jit(lambda x, y, n: x * n + y)
    for y in (X, device_put(X), 3.0):
        for _ in range(2):
            out = f(x, y, 2)
            assert np.array_equal(out, X * 2 + y)
            assert out.sharding.is_equivalent_to(BLOCKS, 2) and out.committed
    donating = jit(lambda n, x: (n + 1, x), donate_argnums=0)
    for _ in range(2):
        assert float(donating(1.0, x)[0]) == 2.0


@pytest.mark.parametrize("other", [REVERSED, PAIR, ONE], ids=["order", "fewer", "one"])
def test_devices_must_agree(other):
    x, y = device_put(X, BLOCKS), device_put(X, other)
    for f in (jit(lambda x, y: x + y), lax.add):
        with pytest.raises(
            ValueError,
            match=r"incompatible devices .* argument 0 of type float32\[4,8\] on cpu:0, cpu:1, "
            r"cpu:2, cpu:3 and argument 1 .* device_put",
        ):
            f(x, y)


def test_requested_shardings():
    f = jit(lambda x: (x + 1, total_of(x)), in_shardings=ROWS, out_shardings=(COLUMNS, None))
    out, total = f(X)
    check(out, COLUMNS, X + 1)
    assert float(total) == X.sum()
    check(f(device_put(X, ROWS))[0], COLUMNS, X + 1)
    with pytest.raises(ValueError, match=r"(?s)Sharding passed to jit does not match.*argument x"):
        f(device_put(X, BLOCKS))
    with pytest.raises(ValueError, match=r"(?s)Sharding passed to jit does not match"):
        f(device_put(X, ONE))
    with pytest.raises(ValueError, match="name different devices"):
        jit(lambda x: x, in_shardings=ROWS, out_shardings=PAIR)(X)
    with pytest.raises(ValueError, match=r"incompatible devices.*named by in_shardings"):
        jit(lambda x: lax.with_sharding_constraint(x, PAIR), in_shardings=ROWS)(X)
    with pytest.raises(ValueError, match=r"incompatible devices.*in_shardings and out_shardings"):
        jit(lambda x, y: x + y, out_shardings=ROWS)(X, device_put(X, PAIR))


def test_constraints_choose_the_devices():
    f = jit(lambda x: lax.with_sharding_constraint(x * 2, COLUMNS))
    check(f(X), COLUMNS, X * 2)
    check(jit(f)(device_put(X, ROWS)), COLUMNS, X * 2)
    with pytest.raises(ValueError, match=r"the devices of .*cpu:3 and argument 0 .* on cpu:2"):
        f(device_put(X, ONE))
    check(lax.with_sharding_constraint(device_put(X, ROWS), BLOCKS), BLOCKS)
    check(jit(lambda x: device_put(x, BLOCKS) + 1)(X), BLOCKS, X + 1)


def test_constraints_must_divide():
    with pytest.raises(ValueError, match="with_sharding_constraint: axis 0 of size 3"):
        jit(lambda x: lax.with_sharding_constraint(x, ROWS))(X[:3])


def test_nested_jit_keeps_its_shardings():
    inner = jit(lambda x: x * 2, in_shardings=ROWS, out_shardings=COLUMNS)
    check(jit(inner)(X), COLUMNS, X * 2)
    g = grad(lambda x: total_of(inner(x)))(device_put(X, ROWS))
    assert np.array_equal(g, np.full_like(X, 2))
    batched = vmap(inner)(np.stack([X, X]))
    assert np.array_equal(batched, np.stack([X, X]) * 2)


def test_large_constants_keep_their_parts():
    table = device_put(X, ROWS)
    f = jit(lambda x: x + table)
    out = f(device_put(X, ROWS))
    assert np.array_equal(out, X * 2) and out.sharding.is_equivalent_to(ROWS, 2)
    assert np.array_equal(jit(lambda x: x + device_put(X))(table), X * 2)


def test_donation():
    x = device_put(X, BLOCKS)
    out = jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and np.array_equal(out, X + 1)
    y = device_put(X, ROWS)
    out = jit(lambda x: x + 1, donate_argnums=0, out_shardings=ROWS)(y)
    assert y.is_deleted() and np.array_equal(out, X + 1)
    with pytest.raises(RuntimeError, match=r"deleted"):
        lax.sin(y)


def test_ahead_of_time():
    f = jit(lambda x, y: x + y)
    compiled = f.lower(ShapeDtypeStruct((4, 8), np.float32, sharding=ROWS), 1.0).compile()
    x = device_put(X, ROWS)
    assert np.array_equal(compiled(x, 1.0), X + 1)
    assert compiled.input_shardings[0][0] is ROWS
    assert compiled.output_shardings.is_equivalent_to(ROWS, 2)
    assert np.array_equal(compiled(X, 1.0), X + 1)  # NumPy values go where they are needed
    with pytest.raises(ValueError, match=r"argument 'x' of type f32\[4,8\] .* device_put"):
        compiled(device_put(X, BLOCKS), 1.0)
    text = f.lower(x, 1.0).as_text()
    assert "sdy.mesh @mesh" in text and "num_partitions = 4" in text


def test_a_second_function_reuses_the_executable_of_the_first(monkeypatch):
    from primax_core._lower import compile as compilation

    def make():
        return jit(lambda x: lax.cos(x) * 3)

    x, y = device_put(X, ROWS), device_put(X, COLUMNS)
    make()(x)
    compiled = []
    original = compilation._compile_or_fetch
    monkeypatch.setattr(
        compilation, "_compile_or_fetch", lambda *a: compiled.append(1) or original(*a)
    )
    make()(x)
    assert not compiled
    make()(y)
    assert len(compiled) == 1


def test_the_devices_of_computations_without_committed_arguments():
    with default_placement(EVERYWHERE):
        out = lax.add(X, 1.0)
        assert out.committed and out.sharding.is_equivalent_to(EVERYWHERE, 2)
        out = jit(lambda x: x * 2, out_shardings=ROWS)(X)
        check(out, ROWS, X * 2)
        with pytest.raises(ValueError, match="the devices of the current mesh, cpu:0, cpu:1"):
            lax.add(device_put(X, ONE), 1.0)
        assert not device_put(X).committed
    assert lax.add(X, 1.0).sharding.num_devices == 1
    with default_placement("cpu"), pytest.raises(ValueError, match="takes a sharding, got 'cpu'"):
        lax.sin(X)


def test_large_numpy_arguments_are_transferred_in_parts(monkeypatch):
    """No device receives more than its part, neither of arguments nor of constants."""
    from primax_core._runtime import buffers

    big = np.arange(2 << 16, dtype=np.float32).reshape(4, -1)
    sizes = []
    original = buffers._put

    def recorded(values, *rest):
        sizes.extend(v.nbytes for v in values)
        return original(values, *rest)

    monkeypatch.setattr(buffers, "_put", recorded)
    out = jit(lambda x: x + 1, in_shardings=ROWS)(big)
    assert np.array_equal(out, big + 1) and set(sizes) == {big.nbytes // 2}
    sizes.clear()
    sharded = device_put(big, BLOCKS)
    assert set(sizes) == {big.nbytes // 4}
    sizes.clear()
    out = jit(lambda x, y: x + y)(sharded, big)  # XLA chooses the sharding of the argument
    assert np.array_equal(out, big * 2) and set(sizes) == {big.nbytes // 4}
    assert out.sharding.is_equivalent_to(BLOCKS, 2)
    one = jit(lambda x: x + 1)(big)
    assert one.sharding.num_devices == 1 and not one.committed


def test_filled_arrays_are_made_in_parts():
    x = device_put(X, ROWS)
    check(lax.full_like(x, 2), ROWS, np.full_like(X, 2))
    check(lax.full((4, 8), 1.5, np.float32, sharding=BLOCKS), BLOCKS, np.full_like(X, 1.5))
    check(jit(lambda: lax.full((4, 8), 1.0, sharding=BLOCKS))(), BLOCKS, np.ones_like(X))
    assert lax.full_like(x, 0, shape=(2,)).sharding.num_devices == 1
    assert lax.full((3,), 1.0, sharding=ONE).sharding is ONE
    with pytest.raises(ValueError, match="out_sharding of broadcast_in_dim: axis 0 of size 3"):
        lax.full((3, 8), 1.0, sharding=ROWS)
    batched = vmap(lambda v: lax.broadcast_in_dim(v, (4, 8), (), out_sharding=ROWS))(np.arange(2.0))
    assert batched.sharding.shard_shape((2, 4, 8)) == (2, 2, 8)


def test_serialized_executables():
    table = device_put(np.arange(32.0, dtype=np.float32).reshape(4, 8) + 1, ROWS)
    f = jit(lambda x, n: (x * table + n, lax.reduce_sum(x, (0,))), out_shardings=(BLOCKS, None))
    compiled = f.lower(device_put(X, ROWS), 2.0).compile()
    saved = serialize(compiled)
    again = deserialize_and_load(*saved)
    for arguments in [(device_put(X, ROWS), 2.0), (X, np.float32(2))]:
        out, total = again(*arguments)
        check(out, BLOCKS, X * np.asarray(table) + 2)
        assert np.array_equal(total, X.sum(0))
    assert again.input_shardings[0][0] is ROWS
    other = deserialize_and_load(*saved, execution_devices=devices()[3::-1])
    out, _ = other(X, 2.0)
    assert np.array_equal(out, X * np.asarray(table) + 2)
    assert out.sharding._devices == tuple(devices()[3::-1])
    with pytest.raises(ValueError, match="for 4 devices, but execution_devices has 1"):
        deserialize_and_load(*saved, execution_devices=devices()[:1])
    assert serialize(again)[0] == saved[0]
