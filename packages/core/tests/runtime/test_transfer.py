"""Transfers of pytrees to devices and back, eagerly and under transformations."""

import numpy as np
import pytest

from primax_core import grad, jit, jvp, linearize, make_jaxpr, value_and_grad, vjp, vmap
from primax_core._api.transfer import (
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
)
from primax_core._base.config import default_device
from primax_core._runtime.array import put
from primax_core._runtime.devices import devices
from primax_core._runtime.sharding import SingleDeviceSharding
from primax_core.lax.placement import Space


def places(tree):
    """Device number and ``committed`` of each array of a tuple or list."""
    if isinstance(tree, (tuple, list)):
        return [places(x) for x in tree]
    return tree.device.id, tree.committed


def f32(n=3):
    return put(np.arange(n, dtype=np.float32))


# Where values go


def test_without_a_device():
    x = f32()
    assert device_put(x) is x
    committed = device_put(x, devices()[2])
    assert device_put(committed) is committed
    for value in (1, 1.0, True, 1j, np.float32(1), np.arange(3)):
        assert places(device_put(value)) == (0, False)


def test_with_a_device():
    one = devices()[1]
    for value in (1, 1.0, np.float32(1), np.arange(3), f32(), device_put(f32(), devices()[2])):
        for place in (one, SingleDeviceSharding(one)):
            moved = device_put(value, place)
            assert places(moved) == (1, True)
            assert np.array_equal(moved, np.asarray(value))
    assert device_put(1.0, one).weak_type


def test_the_same_device_shares_the_buffer():
    x = f32()
    y = device_put(x, devices()[0])
    assert y is not x and y.committed and y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    z = device_put(x, devices()[0], may_alias=False)
    assert z.committed and z.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert device_put(x, may_alias=False).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    w = device_put(x, donate=True)
    assert w is not x and not w.committed


def test_trees_and_prefixes():
    tree = {"a": f32(), "b": (f32(), 1.0, None), "c": []}
    out = device_put(tree, {"a": devices()[1], "b": devices()[2], "c": None})
    assert places(out["a"]) == (1, True) and places(out["b"][:2]) == [(2, True), (2, True)]
    assert out["b"][2] is None and out["c"] == []
    out = device_put([1.0, 2.0], [devices()[1], None])
    assert places(out) == [(1, True), (0, False)]
    assert device_put(None) is None and device_put([], devices()[1]) == []
    aliased = device_put([f32(), f32()], may_alias=[True, False])
    assert places(aliased) == [(0, False)] * 2


def test_memory_spaces():
    x = device_put(f32(), Space.Host)
    assert x.sharding.memory_kind == "pinned_host" and x.committed
    assert device_put(x, Space.Device).sharding is SingleDeviceSharding(devices()[0])
    assert device_put(x, Space.Any).sharding is x.sharding
    assert device_put(np.arange(3), Space.Host).tolist() == [0, 1, 2]
    assert (x + 1).sharding.memory_kind == "device"


def test_to_device():
    x = f32().to_device(devices()[1])
    assert places(x) == (1, True)
    with pytest.raises(NotImplementedError, match="stream"):
        x.to_device(devices()[1], stream=1)


def test_bad_devices():
    for bad in ("cpu", 3):
        with pytest.raises(ValueError, match=f"got {bad!r} of type"):
            device_put(f32(), bad)
    with pytest.raises(ValueError, match="may_alias and donate cannot be True at the same time"):
        device_put(f32(), donate=True, may_alias=True)
    with pytest.raises(ValueError, match="device_put device specification must be a tree prefix"):
        device_put({"a": 1, "b": 2}, {"a": devices()[1]})
    with pytest.raises(IndexError, match=r"no cpu device number 99: the devices are \[CpuDevice"):
        device_put(f32(), devices()[99])


# Under transformations


def move(x):
    return device_put(x, devices()[1])


def test_jaxpr():
    text = str(make_jaxpr(lambda x: device_put(x) * 2)(f32()))
    assert "device_put[" in text and "devices=(None,)" in text and "srcs=(None,)" in text
    assert "copy_semantics=(ArrayCopySemantics.REUSE_INPUT,)" in text
    assert "devices=(CpuDevice(id=1),)" in str(make_jaxpr(move)(f32()))


def test_is_the_identity_when_compiled():
    x = f32()
    assert places(jit(lambda x: move(x) * 2)(x)) == (0, False)
    assert places(jit(lambda x: move(x) * 2)(device_put(x, devices()[0]))) == (0, True)
    assert jit(lambda x: move(x) * 2)(x).tolist() == [0, 2, 4]


def test_eager_transformations_transfer():
    x = f32()
    assert places(vmap(move)(x)) == (1, True)
    assert places(jvp(move, (x,), (x,))) == [(1, True), (1, True)]
    y, tangent = linearize(move, x)
    assert places(y) == (1, True) and places(tangent(x)) == (1, True)
    y, back = vjp(move, x)
    assert places(back(y)) == [(0, True)]


def test_gradients_are_on_the_arguments_device():
    value, slope = value_and_grad(lambda x: move(x) * 3.0)(device_put(2.0))
    assert (float(value), float(slope)) == (6.0, 3.0)
    assert places([value, slope]) == [(1, True), (0, True)]
    assert float(grad(lambda x: device_put(x) * 3.0)(2.0)) == 3.0
    assert float(grad(jit(lambda x: move(x) * 3.0))(2.0)) == 3.0
    assert float(grad(grad(lambda x: move(x) * x * x))(2.0)) == 12.0


def test_several_operands():
    def pair(x, y):
        a, b = device_put((x, y), (devices()[1], devices()[2]))
        return a, b

    x = f32()
    assert places(vmap(pair, (0, None))(x, x)) == [(1, True), (2, True)]
    outs, tangents = jvp(lambda x: pair(x, x), (x,), (x,))
    assert places([*outs, *tangents]) == [(1, True), (2, True)] * 2
    (used, _), back = vjp(lambda x: pair(x, x), x)
    assert used.device.id == 1 and back((x, x))[0].tolist() == [0, 2, 4]
    only = jit(lambda x: pair(x, x)[1] * 2)
    assert only(x).tolist() == [0, 2, 4]
    assert float(grad(lambda x: pair(x, x * 2)[1])(3.0)) == 2.0


# Back to the host


def test_device_get():
    x = f32()
    out = device_get({"a": x, "b": 1, "c": 1.5, "d": "text", "e": None, "f": device_put(2.0)})
    assert type(out["a"]) is type(out["f"]) is np.ndarray and out["f"].shape == ()
    assert not out["a"].flags.writeable and np.array_equal(out["a"], x)
    assert (out["b"], out["c"], out["d"], out["e"]) == (1, 1.5, "text", None)
    own = np.ones(2)
    assert device_get(own) is own

    class Convertible:
        def __array__(self, dtype=None, copy=None):
            return np.ones(2)

    assert type(device_get(Convertible())) is np.ndarray
    assert jit(lambda x: device_get(x))(x).tolist() == [0, 1, 2]
    x.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        device_get([1, x])


def test_waiting():
    tree = {"a": f32(), "b": 1, "c": "text", "d": None}
    assert block_until_ready(tree) is tree and copy_to_host_async(tree) is tree
    assert jit(lambda x: block_until_ready(x) + 1)(f32()).tolist() == [1, 2, 3]


# Computations across devices


def test_committed_arguments_determine_the_device():
    x, moved = f32(), move(f32())
    assert places(x + moved) == (1, True)
    assert places(jit(lambda a, b: (a, b * 2))(x, moved)) == [(1, True)] * 2
    assert places(x + x) == (0, False)
    both = r"incompatible devices.*argument 0 of type float32\[3\] on .*argument 1 of type"
    for add in (lambda a, b: a + b, jit(lambda a, b: a + b)):
        with pytest.raises(ValueError, match=both):
            add(moved, device_put(f32(), devices()[2]))


def test_default_device():
    x = f32()
    with default_device(devices()[2]):
        x_default = device_put(1.0)
        assert (
            places([x_default, x + 1, jit(lambda: 1.0)(), jit(lambda x: x)(x)]) == [(2, False)] * 4
        )
        assert places(device_put(x)) == (0, False)
        assert places(move(x) + 1) == (1, True)
    assert places([x_default, x_default + 1, x_default + x]) == [(2, False), (0, False), (0, False)]
    with default_device("cpu"):
        assert places(device_put(1.0)) == (0, False)
    for bad in ("foo", 3):
        with default_device(bad), pytest.raises(ValueError, match="option default_device takes"):
            device_put(1.0)
