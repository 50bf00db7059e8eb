"""Parts of arrays on several devices, as arrays on one device and as NumPy arrays.

Loaded on first use: arrays on one device have no parts.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._ir.avals import ShapedArray
from .array import ArrayImpl, Spec, spec_of
from .buffers import put_raw
from .devices import Device, check_not_forked
from .failures import raise_explained
from .jaxlib_errors import JaxRuntimeError
from .jaxlib_versions import READS_SEVERAL_DEVICES, collect_garbage, parts_to_host
from .parts import distinct, is_exportable, numpy_dtypes, part_on_device, reader_of_parts
from .sharding import Index, SingleDeviceSharding

_KEPT_BYTES: Final = 1 << 16


class PartReader:
    """Reader of the part on one device of this process, for raw arrays of one spec.

    Args:
      whole: the spec of the raw arrays.
      part: the spec of the part.
    """

    __slots__ = ("part", "on_host", "shares_memory", "has_buffer", "_sharding")

    def __init__(self, whole: Spec, part: Spec):
        (device,) = part.sharding._devices
        self.part = part
        self.on_host: Callable[[Any], np.ndarray] = reader_of_parts(
            whole.stored, part.stored.shape, whole.sharding, device
        )
        self.shares_memory = device.platform == "cpu"
        self.has_buffer = self.shares_memory and whole.stored.dtype in numpy_dtypes
        self._sharding = whole.sharding

    def raw(self, source: _Source) -> Any:
        """The part as a raw array on its device."""
        one: Any = self.part.sharding
        whole = source.computed() if self.shares_memory else source.raw
        return part_on_device(whole, self.on_host, self.part.stored, self._sharding, one)


class PartReaders:
    """Readers of the parts of raw arrays of one spec, and of all their values."""

    __slots__ = ("by_device", "_spec", "_places")

    def __init__(self, spec: Spec):
        aval, sharding = spec.aval, spec.sharding
        part = ShapedArray(sharding.shard_shape(aval.shape), aval.dtype, aval.weak_type)
        kind = None if sharding._on_default_memory() else sharding.memory_kind
        self._spec = spec
        self.by_device: dict[Device, PartReader] = {
            d: PartReader(spec, spec_of(part, SingleDeviceSharding(d, memory_kind=kind), True))
            for d in sharding.addressable_devices_indices_map(aval.shape)
        }
        self._places: list[tuple[Callable[[Any], np.ndarray], Index]] | None = None

    def parts_of(self, whole: Any) -> Parts:
        """The parts of a raw array."""
        return Parts(whole, self.by_device)

    def values(self, whole: Any) -> np.ndarray:
        """The values of a raw array whose parts all are on devices of this process, read-only."""
        aval, sharding = self._spec.stored, self._spec.sharding
        whole.block_until_ready()
        if sharding.is_fully_replicated:
            return next(iter(self.by_device.values())).on_host(whole)
        if READS_SEVERAL_DEVICES or not is_exportable(aval.dtype):
            return parts_to_host(whole, aval.size * aval.dtype.itemsize <= _KEPT_BYTES)
        if self._places is None:
            indices = sharding.addressable_devices_indices_map(aval.shape)
            self._places = [
                (self.by_device[d].on_host, tuple(slice(*b) for b in bounds))
                for d, bounds in distinct(indices, aval.shape)
            ]
        out = np.empty(aval.shape, aval.dtype)
        for read, place in self._places:
            out[place] = read(whole)
        out.flags.writeable = False
        return out


class Parts:
    """The parts of one array that were taken; the array keeps them as long as its buffer.

    Args:
      whole: the raw array.
      readers: the readers of its parts.
    """

    __slots__ = ("readers", "_source", "_taken")

    def __init__(self, whole: Any, readers: dict[Device, PartReader]):
        self.readers = readers
        self._source = _Source(whole)
        self._taken: dict[Device, ArrayImpl] = {}

    def on(self, device: Device) -> ArrayImpl:
        """The part on a device of this process, as an array on that device."""
        part = self._taken.get(device)
        if part is None or part.is_deleted():
            reader = self.readers[device]
            part = _new(UnreadPart)
            _set_buffer(part, (self._source, reader))
            part._spec = reader.part
            self._taken[device] = part
        return part

    def copy_before_donation(self) -> None:
        """Read the parts that are still in use; the others would keep the memory."""
        used = [weakref.ref(part) for part in self._taken.values()]
        self._taken.clear()
        for ref in used:
            part = ref()
            if part is not None:
                _read(part)
        collect_garbage()  # jaxlib releases memory of NumPy arrays later otherwise


class _Source:
    """A raw array on several devices, and whether its values are known to be computed."""

    __slots__ = ("raw", "_is_computed")

    def __init__(self, raw: Any):
        self.raw = raw
        self._is_computed = False

    def computed(self) -> Any:
        """The raw array, after its computation: reading an unallocated buffer aborts."""
        if not self._is_computed:
            if not self.raw.is_ready():
                check_not_forked()
            try:
                self.raw.block_until_ready()
            except JaxRuntimeError as e:
                raise_explained(e)
            self._is_computed = True
        return self.raw


_new: Final = object.__new__
_slot: Final = ArrayImpl.__dict__["_buf"]
_get_buffer: Final = _slot.__get__
_set_buffer: Final = _slot.__set__


class UnreadPart(ArrayImpl):
    """A part that is read on first use, and becomes an ``ArrayImpl`` then.

    Until then its buffer is a pair of the source and the reader. So parts can be taken during the
    computation of the array, and one that only NumPy reads needs no buffer of its own.
    """

    __slots__ = ()

    @property
    def _buf(self) -> Any:
        buffer = _get_buffer(self)
        if type(buffer) is not tuple:  # read by another thread
            return buffer
        source, reader = buffer
        if source.raw.is_deleted():  # through another array with the same buffer
            stored = reader.part.stored
            raw = put_raw(np.zeros(stored.shape, stored.dtype), stored, reader.part.sharding)
            raw.delete()
        else:
            raw = reader.raw(source)
        self._buf = raw
        return raw

    @_buf.setter
    def _buf(self, raw: Any) -> None:
        _set_buffer(self, raw)
        self.__class__ = ArrayImpl  # type: ignore[assignment]

    def _unread(self) -> tuple[_Source, PartReader] | None:
        """The source and the reader, unless the part is read or its values are lost."""
        buffer = _get_buffer(self)
        if type(buffer) is tuple and not buffer[0].raw.is_deleted():
            return buffer
        _read(self)
        return None

    def is_deleted(self) -> bool:
        return self._unread() is None and self.is_deleted()

    def is_ready(self) -> bool:
        unread = self._unread()
        return self.is_ready() if unread is None else unread[0].raw.is_ready()

    def block_until_ready(self) -> ArrayImpl:
        unread = self._unread()
        if unread is None:
            return self.block_until_ready()
        unread[0].computed()
        return self

    def _check_alive(self, error: type[Exception] = RuntimeError) -> None:
        if self._unread() is None:
            self._check_alive(error)

    @property
    def _stored(self) -> np.ndarray:
        unread = self._unread()
        if unread is None or not unread[1].shares_memory:
            return _read(self)._stored
        source, reader = unread
        return reader.on_host(source.computed())

    def __buffer__(self, flags: int) -> memoryview:
        unread = self._unread()
        if unread is None or not unread[1].has_buffer:
            return _read(self).__buffer__(flags)
        source, reader = unread
        return memoryview(reader.on_host(source.computed()))


# Users, and other copies of the core, know one class of arrays.
UnreadPart.__name__ = UnreadPart.__qualname__ = ArrayImpl.__name__
UnreadPart.__module__ = ArrayImpl.__module__


def _read(part: ArrayImpl) -> ArrayImpl:
    """The part with a buffer of its own."""
    _ = part._buf
    return part
