"""The Sharding protocol, with the core's sharding and a third-party one."""

import copy
import pickle

import numpy as np
import pytest

from primax_core._runtime.array import put
from primax_core._runtime.devices import devices
from primax_core._runtime.jaxlib_versions import HloSharding
from primax_core._runtime.sharding import Sharding, SingleDeviceSharding, device_assignment


def single(i=0, **options):
    return SingleDeviceSharding(devices()[i], **options)


def test_equal_shardings_are_one_object():
    assert single() is single() is single(memory_kind="device")
    assert single() is not single(1)
    assert copy.deepcopy(single(1)) is pickle.loads(pickle.dumps(single(1))) is single(1)
    assert single() != single(1) and len({single(), single(), single(1)}) == 2


def test_single_device():
    s, device = single(1), devices()[1]
    assert repr(s) == "SingleDeviceSharding(device=CpuDevice(id=1), memory_kind=device)"
    assert s.device_set == s.addressable_devices == {device} and s.num_devices == 1
    assert s.is_fully_replicated and s.is_fully_addressable and s.has_addressable_devices
    whole = {device: (slice(None), slice(None))}
    assert s.devices_indices_map((2, 3)) == s.addressable_devices_indices_map((2, 3)) == whole
    assert s.shard_shape((2, 3)) == (2, 3)
    assert s.is_equivalent_to(single(1), 2) and not s.is_equivalent_to(single(), 2)


def test_memory_kinds():
    host = single().with_memory_kind("pinned_host")
    assert host.memory_kind == "pinned_host" and host is single(memory_kind="pinned_host")
    assert host is not single() and pickle.loads(pickle.dumps(host)) is host
    assert host.with_memory_kind("device") is single() and host._computing() is single()
    with pytest.raises(ValueError, match=r"Could not find memory addressable by device cpu.*foo"):
        single(memory_kind="foo")
    x = put(np.arange(3.0), host)
    assert x.sharding is host and np.array_equal(x, np.arange(3.0))


def test_an_argument_that_is_not_a_device():
    with pytest.raises(TypeError, match="needs a device, got 'cpu'"):
        SingleDeviceSharding("cpu")
    with pytest.raises(ValueError, match="at least one device"):
        device_assignment(())


class Halves(Sharding):
    """The first axis in two halves on two devices."""

    __slots__ = ()
    _one: list = []

    def __new__(cls):
        if not cls._one:
            self = object.__new__(cls)
            self._by_rank = {}
            cls._one.append(self)
        return cls._one[0]

    _devices = property(lambda self: tuple(devices()[1:3]))
    memory_kind = property(lambda self: "device")
    is_fully_replicated = property(lambda self: False)

    def devices_indices_map(self, global_shape):
        half, rest = global_shape[0] // 2, (slice(None),) * (len(global_shape) - 1)
        first, second = self._devices
        return {first: (slice(0, half), *rest), second: (slice(half, None), *rest)}

    def with_memory_kind(self, kind):
        return self

    def _hlo_sharding(self, ndim):
        return HloSharding.iota_tile([2] + [1] * (ndim - 1), [2], [0], [])

    def _sdy(self, ndim):
        return None


def test_a_third_party_sharding():
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    x = put(values, Halves())
    assert x.sharding is Halves() and x.device is Halves() and x.devices() == set(devices()[1:3])
    assert x.committed and not x.is_fully_replicated and x.is_fully_addressable
    assert Halves().shard_shape((4, 3)) == (2, 3)
    assert np.array_equal(x, values)
    shards = x.addressable_shards
    assert [s.device for s in shards] == devices()[1:3]
    assert [s.data.device for s in shards] == devices()[1:3]
    assert np.array_equal(shards[1].data, values[2:]) and shards[1].replica_id == 0
    assert [r.tolist() for r in x] == values.tolist()


def test_no_instance_without_the_protocol():
    class Nothing(Sharding):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()
