"""``ArrayImpl``: a concrete array with a raw jaxlib buffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from .._base import caches
from .._base.config import state
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.symbolic_dims import UnknownDimensionError, is_static
from .._trace.array import Array
from .._trace.core import ODD_CHARS, converted
from .._trace.donation import notify_donation
from . import devices as _devices, guards, interchange
from .array_text import NUMPY_AXES, deleted_text, format_of, repr_of, unshaped
from .buffers import copy_raw, move_raw, put_raw
from .failures import raise_explained
from .jaxlib_errors import JaxRuntimeError
from .jaxlib_versions import (
    COPIES_KEEP_LAYOUTS,
    export_capsule,
    result_handler,
    start_copies_to_host,
    to_host,
)
from .layouts import Format, Layout, row_major
from .sharding import Sharding, SingleDeviceSharding
from .shards import Shard


class Spec:
    """Cache key of a concrete array: its aval, sharding, commitment and layout.

    The layout is ``None`` if it is row-major. Specs are interned, so keys of specs compare by
    identity.
    """

    __slots__ = (
        "aval", "sharding", "committed", "layout", "stored", "wrap", "handler", "__weakref__",
    )  # fmt: skip

    def __init__(self, aval: ShapedArray, sharding: Sharding, committed: bool, layout: Any = None):
        if _devices.check_current is not None:
            _devices.check_current(sharding._devices)
        self.aval = aval
        self.sharding = sharding
        self.committed = committed
        self.layout = layout
        self.wrap = _wrapper(self)
        self.stored = stored = physical(aval)
        if not is_static(stored.shape):
            raise UnknownDimensionError(
                f"there are no arrays of type {aval.str_short()}: the sizes of an array are "
                "numbers. Functions can be traced for symbolic shapes (by export, make_jaxpr, "
                "eval_shape or jit(f).trace), but not called or compiled for them."
            )
        self.handler = result_handler(stored, sharding._jaxlib(stored.ndim)).wrap(self.wrap)

    def __repr__(self):
        return f"Spec({self.aval}, {self.sharding}, committed={self.committed})"


_specs: dict[tuple, Spec] = {}


def spec_of(
    aval: ShapedArray, sharding: Sharding, committed: bool, layout: Layout | None = None
) -> Spec:
    """The interned spec; ``layout`` is a canonical one (``layouts.canonical``)."""
    key = (aval, sharding, committed, layout)
    known = _specs.get(key)
    return known if known is not None else _new_spec(*key)


_part_readers: dict[Spec, Any] = caches.bounded_cache(256)


def _new_spec(aval: ShapedArray, sharding: Sharding, committed: bool, layout: Any) -> Spec:
    key = (aval, sharding, committed, layout)
    placement = sharding._placement(aval.ndim)
    if placement is not aval.placement:  # the type of an array says how it is sharded
        placed = aval.update(placement=placement)
        return _specs.setdefault(key, spec_of(placed, sharding, committed, layout))
    return _specs.setdefault(key, Spec(*key))


def physical(aval: ShapedArray) -> ShapedArray:
    """The aval of the buffer of an array.

    Extended dtypes add axes to the shape, and ``float0``, which has no values, is stored as
    booleans.
    """
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        return dtype.physical_aval(aval)
    if dtype == dtypes.float0:
        return ShapedArray(aval.shape, dtypes.bool_)
    return aval


def _wrapper(spec: Spec):
    new = object.__new__

    def wrap(buf):
        array = new(ArrayImpl)
        array._buf = buf
        array._spec = spec
        return array

    return wrap


class ArrayImpl(Array):
    """A concrete array, created by operations, :func:`device_put` and conversions."""

    __slots__ = ("_buf", "_spec", "__weakref__", "__dict__")

    _buf: Any
    _spec: Spec

    def __init__(self):
        raise TypeError(
            "arrays are created by operations or primax.device_put, not by calling Array"
        )

    @property
    def aval(self) -> ShapedArray:
        """The aval of the array."""
        return self._spec.aval

    # Placement

    @property
    def sharding(self) -> Sharding:
        """The sharding of the array."""
        return self._spec.sharding

    @property
    def committed(self) -> bool:
        """True if computations must run on the devices of the array."""
        return self._spec.committed

    _committed = committed

    def devices(self) -> set[_devices.Device]:
        """The devices of the array."""
        return self._spec.sharding.device_set

    @property
    def device(self) -> _devices.Device | Sharding:
        """The device, or the sharding if there are several devices."""
        sharding = self._spec.sharding
        return sharding._devices[0] if sharding.num_devices == 1 else sharding

    def platform(self) -> str:
        """Name of the platform of the array."""
        return self._spec.sharding._devices[0].platform

    @property
    def is_fully_addressable(self) -> bool:
        """True if all devices of the array belong to this process."""
        return self._spec.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """True if every device has the whole array."""
        return self._spec.sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The shards on the devices of this process."""
        self._check_alive()
        sharding, shape = self._spec.sharding, self._spec.aval.shape
        if sharding.num_devices == 1:
            return [Shard(sharding._devices[0], sharding, shape, self)]
        part = self._part_on
        return [Shard(d, sharding, shape, None, part) for d in self._parts().readers]

    def _part_on(self, device: _devices.Device) -> ArrayImpl:
        """The part on one device of this process, as an array on that device."""
        if self._buf.is_deleted():
            self._check_alive()
        return self._parts().on(device)

    def _parts(self) -> Any:
        """The parts that were taken of an array on several devices."""
        attributes = self.__dict__
        parts = attributes.get("_own_parts")
        if parts is None:
            parts = attributes["_own_parts"] = self._part_readers().parts_of(self._buf)
        return parts

    def _part_readers(self) -> Any:
        readers = _part_readers.get(self._spec)
        if readers is None:
            from .array_parts import PartReaders  # loaded on first use: most are on one device

            readers = _part_readers[self._spec] = PartReaders(self._spec)
        return readers

    @property
    def global_shards(self) -> list[Shard]:
        """The shards on all devices; without data on the devices of other processes."""
        own = {s.device: s for s in self.addressable_shards}
        sharding, shape = self._spec.sharding, self._spec.aval.shape
        return [own.get(d) or Shard(d, sharding, shape) for d in sharding._devices]

    def addressable_data(self, index: int) -> ArrayImpl:
        """The shard on one of this process's devices, as an array on that device.

        Args:
          index: the position in ``addressable_shards``.

        Returns:
          An array on one device. Nothing is copied.

        Raises:
          IndexError: if there is no such shard.

        >>> from primax_core import device_put
        >>> device_put([1.0, 2.0])[0].addressable_data(0).shape
        ()
        """
        self._check_alive()
        if self._spec.sharding.num_devices == 1:
            return [self][index]
        return self._part_on(list(self._part_readers().by_device)[index])

    @property
    def format(self) -> Format:
        """The layout and the sharding of the array."""
        spec = self._spec
        return Format(spec.layout or row_major(spec.stored.ndim), spec.sharding)

    # Lifetime

    def is_deleted(self) -> bool:
        """Return True if the buffer was freed by :meth:`delete` or donated."""
        return self._buf.is_deleted()

    def delete(self) -> None:
        """Free the buffer immediately; later uses of the array raise an error.

        Memory is otherwise freed with the last reference to the array. Computations that use the
        buffer finish first.

        Returns:
          ``None``; also if the array is deleted already.

        >>> from primax_core import device_put
        >>> x = device_put(1.0)
        >>> x.delete()
        >>> x.is_deleted()
        True
        """
        if not self._buf.is_deleted():
            notify_donation(self)
            self._buf.delete()

    def is_ready(self) -> bool:
        """Return True if the value is computed."""
        self._check_alive(JaxRuntimeError)
        return self._buf.is_ready()

    def block_until_ready(self) -> ArrayImpl:
        """Wait until the value is computed and return the array.

        Returns:
          The array itself.

        Raises:
          JaxRuntimeError: if the computation failed, or the array was deleted.

        See :func:`~primax_core.block_until_ready` for trees of arrays.

        >>> from primax_core import device_put
        >>> float(device_put(1.5).block_until_ready())
        1.5
        """
        self._check_alive(JaxRuntimeError)
        try:
            self._buf.block_until_ready()
        except JaxRuntimeError as e:
            raise_explained(e)
        return self

    def copy_to_host_async(self) -> None:
        """Start the transfer to the host for a later conversion to NumPy."""
        self._check_alive()
        start_copies_to_host([self._buf])

    def clone(self) -> ArrayImpl:
        """Another array with the same values, which deletion of this one does not affect.

        On one CPU device both share memory.
        """
        spec = self._spec
        on_cpu = spec.sharding.num_devices == 1 and self.platform() == "cpu"
        if not on_cpu or spec.layout is not None or dtypes.itemsize_bits(spec.stored.dtype) < 8:
            return copy_array(self)
        return spec.wrap(put_raw(self._stored, spec.stored, spec.sharding, share=True))

    def on_device_size_in_bytes(self) -> int:
        """Bytes of the array on its devices, which may differ from ``nbytes``."""
        self._check_alive(JaxRuntimeError)
        return self._buf.on_device_size_in_bytes()

    @property
    def traceback(self) -> Any:
        """Python traceback of the creation, if jaxlib records it; otherwise ``None``."""
        return self._buf.traceback

    def _check_alive(self, error: type[Exception] = RuntimeError) -> None:
        if self._buf.is_deleted():
            raise getattr(self._buf, "error", error)(deleted_text(self))

    # Values

    @property
    def _stored(self) -> np.ndarray:
        """The values of the buffer on the host; read-only, and sharing memory if possible."""
        self._check_alive()
        if state.key not in guards.unguarded and self.platform() != "cpu":
            guards.check("device_to_host", False, self._spec.aval, None)
        try:
            if self._spec.sharding.num_devices == 1:
                return to_host(self._buf)
            return self._gathered()
        except JaxRuntimeError as e:
            raise_explained(e)
        except ValueError as e:
            raise unshaped(self._spec.aval, e) from None

    def _gathered(self) -> np.ndarray:
        """The values of an array on several devices."""
        spec = self._spec
        if not (spec.sharding.is_fully_addressable or spec.sharding.is_fully_replicated):
            raise RuntimeError(
                f"The values of an array of type {spec.aval.str_short()} cannot be read here: "
                f"parts of it are on devices of other processes ({spec.sharding}). Read the parts "
                "of this process with x.addressable_shards, or gather all values with "
                "process_allgather."
            )
        if summed := spec.sharding._summed:
            return summed._reshard(self)._gathered()
        return self._part_readers().values(self._buf)

    @property
    def _value(self) -> np.ndarray:
        """The values on the host; read-only, and sharing memory if possible."""
        dtype = self._spec.aval.dtype
        if isinstance(dtype, dtypes.ExtendedDType):
            raise TypeError(
                f"an array with dtype {dtype.name} has no NumPy values; "
                "for random keys use random.key_data(keys)"
            )
        value = self._stored
        if value.dtype == dtype:
            return value
        return np.zeros(value.shape, dtype) if dtype == dtypes.float0 else value.view(dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError("a conversion of the dtype needs a copy, but copy=False was given")
            return value.astype(dtype)
        return value.copy() if copy else value

    def __buffer__(self, flags: int) -> memoryview:
        # Called from Python 3.12 on. On 3.11 only classes written in C have a buffer: write
        # memoryview(np.asarray(x)).
        self._check_alive()
        if self._spec.stored is not self._spec.aval or self._spec.layout is not None:
            raise BufferError(f"an array of type {self._spec.aval} has no buffer")
        self.block_until_ready()
        return memoryview(self._buf)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        self._check_alive()
        spec = self._spec
        interchange.check_exportable(spec.sharding, spec.aval.dtype, dl_device)
        if spec.layout is not None:
            whole = put(self._value, spec.sharding)
            return whole.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
        buf = copy_raw(self._buf, spec.sharding) if copy else self._buf
        if spec.sharding._devices[0].platform == "cpu":
            stream = None
            buf.block_until_ready()
        return export_capsule(buf, stream, max_version, bool(copy))

    def __dlpack_device__(self) -> tuple[Any, int]:
        return interchange.dlpack_device(self._spec.sharding)

    def unsafe_buffer_pointer(self) -> int:
        """Address of the first byte; invalid after the array is freed."""
        self._check_alive(JaxRuntimeError)
        return interchange.address_of(self._buf)

    def item(self, *args: Any) -> Any:
        """One element as a Python scalar.

        Args:
          args: the index of the element, or its position in row-major order; nothing for an array
            with one element.

        Returns:
          A bool, int, float or complex number.

        Raises:
          ValueError: if the array has another number of elements than one, without an index.

        >>> import numpy as np
        >>> from primax_core import device_put
        >>> x = device_put(np.arange(6.0, dtype=np.float32).reshape(2, 3))
        >>> x.item(1, 2), x.item(4), device_put(1.5).item()
        (5.0, 4.0, 1.5)
        """
        value = self._value
        if not args and value.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return value.item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars.

        Returns:
          A list of lists; a scalar for an array without axes.

        The call waits for the computation and copies all elements.

        >>> import numpy as np
        >>> from primax_core import device_put
        >>> device_put(np.arange(4).reshape(2, 2)).tolist()
        [[0, 1], [2, 3]]
        """
        return self._value.tolist()

    def tobytes(self, order: Literal["C", "F"] = "C") -> bytes:
        r"""Bytes of the elements.

        Args:
          order: ``"C"`` for row-major order, ``"F"`` for column-major order.

        Returns:
          A bytes object of ``nbytes`` bytes.

        >>> import numpy as np
        >>> from primax_core import device_put
        >>> x = device_put(np.array([[1, 2], [3, 4]], np.uint8))
        >>> x.tobytes(), x.tobytes("F")
        (b'\x01\x02\x03\x04', b'\x01\x03\x02\x04')
        """
        return self._value.tobytes(order)

    def __bool__(self) -> bool:
        aval = self._spec.aval
        if aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
                if aval.size
                else "The truth value of an empty array is ambiguous. "
                "Use `array.size > 0` to check that an array is not empty."
            )
        return bool(self._value.item())

    def _scalar(self):
        aval = self._spec.aval
        if aval.ndim:
            raise TypeError(
                f"Only scalar arrays can be converted to Python scalars; got arr.ndim={aval.ndim}"
            )
        return self._value.item()

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        aval = self._spec.aval
        if aval.ndim or aval.dtype.kind not in "iu":
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return int(self._value[()])

    def __iter__(self) -> Iterator[ArrayImpl]:
        if not self._spec.aval.ndim:
            raise TypeError("iteration over a 0-d array")
        sharding, shape = self._spec.sharding, self.shape
        if sharding.num_devices > 1 and sharding.shard_shape(shape)[0] == shape[0]:
            return super().__iter__()  # rows on the same devices
        return self._rows()

    def _rows(self) -> Iterator[ArrayImpl]:
        # One read and many small transfers: as fast as slices on the device, without compilation.
        # The rows of an array that is divided along axis 0 go to the default device.
        sharding, committed = self._spec.sharding, self._spec.committed
        if sharding.num_devices != 1:
            sharding, committed = default_sharding(), False
        spec = spec_of(self._spec.aval.without_axis(0), sharding, committed)
        stored = spec.stored
        for row in self._stored:
            yield spec.wrap(put_raw(np.asarray(row, stored.dtype), stored, sharding))

    __hash__: Any = None  # type: ignore[assignment]

    # Copies

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._stored.copy(), self._spec.aval)

    def __copy__(self) -> ArrayImpl:
        return copy_array(self)

    def __deepcopy__(self, memo: Any) -> ArrayImpl:
        return copy_array(self)

    # Text

    def __repr__(self) -> str:
        aval = self._spec.aval
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            return aval.dtype.repr_of(self)
        return repr_of(aval, self._value if aval.ndim <= NUMPY_AXES else None)

    def _repr_html_(self) -> str:
        """The array in a notebook."""
        from .array_html import array_html

        return array_html(self)

    def __str__(self) -> str:
        if isinstance(self.dtype, dtypes.ExtendedDType) or self.ndim > NUMPY_AXES:
            return repr(self)
        return str(self._value)

    def __format__(self, spec: str) -> str:
        if isinstance(self._spec.aval.dtype, dtypes.ExtendedDType):
            return format(repr(self), spec)
        return format_of(self._value, spec)


def _restored(stored: np.ndarray, aval: ShapedArray) -> ArrayImpl:
    sharding = default_sharding()
    spec = spec_of(aval, sharding, False)
    return spec.wrap(put_raw(stored, spec.stored, sharding))


def retyped(array: ArrayImpl, aval: ShapedArray) -> ArrayImpl:
    """An array of the same buffer with another aval of the same physical type."""
    spec = array._spec
    return spec_of(aval, spec.sharding, spec.committed, spec.layout).wrap(array._buf)


# Transfers


def put(
    x: Any,
    sharding: Sharding | None = None,
    aval: ShapedArray | None = None,
    explicit: bool = False,
) -> ArrayImpl:
    """An array with copies of NumPy values; committed if a sharding is given.

    Args:
      aval: the aval of the array, to which the values are converted. By default their own, with
        64-bit types narrowed if they are disabled.
      explicit: the user requested the transfer; for transfer guards.

    Raises:
      TypeError: if arrays cannot have the dtype of the values.
    """
    committed = sharding is not None
    if sharding is None:
        sharding = default_sharding()
    value = np.asarray(converted(x))
    if aval is None:
        dtype = value.dtype
        dtype = dtypes.canonicalize_dtype(dtype if dtype.isnative else dtype.newbyteorder("="))
        if dtype.char in ODD_CHARS:
            dtypes.check_valid_dtype(dtype, x)
        aval = ShapedArray(value.shape, dtype)
    spec = spec_of(aval, sharding, committed)
    if state.key not in guards.unguarded:
        guards.check("host_to_device", explicit, aval, sharding)
    stored = spec.stored
    if value.dtype is not stored.dtype and value.dtype != stored.dtype:
        value = value.astype(stored.dtype)
    return spec.wrap(put_raw(value, stored, sharding))


def default_sharding() -> SingleDeviceSharding:
    """The sharding of uncommitted values.

    Returns:
      A sharding with the default device: that of the option ``default_device``, or the first
      device of the default platform.

    The call starts the backends.

    >>> from primax_core import devices
    >>> from primax_core.extend.runtime import default_sharding
    >>> default_sharding().device_set == {devices()[0]}
    True
    """
    key = state.key
    sharding = _default_shardings.get(key)
    if sharding is None:
        sharding = _default_shardings[key] = SingleDeviceSharding(_devices.default_device())
    return sharding


_default_shardings: dict[Any, SingleDeviceSharding] = caches.bounded_cache(256)


def move(
    array: ArrayImpl, sharding: Sharding, committed: bool = True, explicit: bool = True
) -> ArrayImpl:
    """The array on another device; with the same buffer if it is already there."""
    array._check_alive()
    spec = array._spec
    target = spec_of(spec.aval, sharding, committed, spec.layout)
    if spec.sharding is sharding:
        return target.wrap(array._buf)
    if spec.layout is not None:
        # Through the host, and row-major afterwards.
        array = put(array, sharding, spec.aval, explicit)
        return spec_of(spec.aval, sharding, committed).wrap(array._buf)
    if state.key not in guards.unguarded and spec.sharding._devices != sharding._devices:
        guards.check("device_to_device", explicit, spec.aval, sharding)
    return target.wrap(move_raw(array._buf, spec.stored, spec.sharding, sharding))


def copy_array(array: ArrayImpl) -> ArrayImpl:
    """A new buffer with the same values and placement."""
    array._check_alive()
    spec = array._spec
    if spec.layout is None or COPIES_KEEP_LAYOUTS:
        return spec.wrap(copy_raw(array._buf, spec.sharding))
    copy = put(array, spec.sharding, spec.aval, explicit=True)
    return spec_of(spec.aval, spec.sharding, spec.committed).wrap(copy._buf)
