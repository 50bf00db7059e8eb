"""``ArrayImpl``: our array around a raw jaxlib buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.config import state
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._trace.array import Array
from . import devices as _devices
from .devices import SingleDeviceSharding
from .jaxlib_versions import _jax, result_handler, to_host


class Spec:
    """All that caches need to know of a concrete array: its aval, where it lies, whether it must
    stay there. Interned, so keys made of specs compare by identity."""

    __slots__ = ("aval", "sharding", "committed", "wrap", "handler", "__weakref__")

    def __init__(self, aval: ShapedArray, sharding, committed: bool):
        self.aval = aval
        self.sharding = sharding
        self.committed = committed
        self.wrap = _wrapper(self)
        self.handler = result_handler(physical(aval), sharding._raw).wrap(self.wrap)

    def __repr__(self):
        return f"Spec({self.aval}, {self.sharding}, committed={self.committed})"


_specs: dict[tuple, Spec] = {}


def spec_of(aval: ShapedArray, sharding, committed: bool) -> Spec:
    """The interned spec."""
    key = (aval, sharding, committed)
    found = _specs.get(key)
    return found if found is not None else _specs.setdefault(key, Spec(aval, sharding, committed))


def physical(aval: ShapedArray) -> ShapedArray:
    """The type of the buffer that holds an array; extended dtypes add axes to the shape."""
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        return dtype.physical_aval(aval)
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
    """A concrete array; made by operations, :func:`device_put` and conversions."""

    __slots__ = ("_buf", "_spec", "__weakref__", "__dict__")

    _buf: Any
    _spec: Spec

    def __init__(self):
        raise TypeError("arrays are made by operations or primax.device_put, not by calling Array")

    @property
    def aval(self) -> ShapedArray:
        """The array's type."""
        return self._spec.aval

    # Placement

    @property
    def sharding(self):
        """How the array lies on devices."""
        return self._spec.sharding

    @property
    def committed(self) -> bool:
        """Whether computations must run where the array lies."""
        return self._spec.committed

    _committed = committed

    def devices(self) -> set:
        """The devices that hold a part of the array."""
        return set(self._spec.sharding.device_set)

    @property
    def device(self):
        """The device, or the sharding where there are several."""
        found = self._spec.sharding.device_set
        return next(iter(found)) if len(found) == 1 else self._spec.sharding

    def platform(self) -> str:
        """Name of the platform the array lies on."""
        return next(iter(self._spec.sharding.device_set)).platform

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach all of the array."""
        return self._spec.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return self._spec.sharding.is_fully_replicated

    # Life

    def is_deleted(self) -> bool:
        """Whether the buffer was freed, by :meth:`delete` or by donation."""
        return self._buf.is_deleted()

    def delete(self) -> None:
        """Free the buffer now; using the array afterwards raises."""
        if not self._buf.is_deleted():
            self._buf.delete()

    def is_ready(self) -> bool:
        """Whether the value has been computed."""
        self._check_alive()
        return self._buf.is_ready()

    def block_until_ready(self):
        """Wait until the value has been computed; returns the array. Errors surface here."""
        self._check_alive()
        self._buf.block_until_ready()
        return self

    def copy_to_host_async(self) -> None:
        """Start the transfer to the host that a later conversion to NumPy waits for."""
        self._check_alive()
        if hasattr(_jax, "batched_copy_to_host_async"):
            _jax.batched_copy_to_host_async([self._buf])

    def _check_alive(self) -> None:
        if self._buf.is_deleted():
            raise RuntimeError(f"Array has been deleted with shape={self._spec.aval.str_short()}.")

    # Values

    @property
    def _value(self) -> np.ndarray:
        """The values on the host; read-only, and sharing memory where that is possible."""
        self._check_alive()
        aval = self._spec.aval
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            raise TypeError(
                f"an array with dtype {aval.dtype.name} has no NumPy values; "
                "for random keys use random.key_data(keys)"
            )
        value = to_host(self._buf)
        if value.dtype != aval.dtype:
            value = value.view(aval.dtype)
        value.flags.writeable = False
        return value

    def __array__(self, dtype=None, copy=None):
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError("a conversion of the dtype needs a copy, but copy=False was given")
            return value.astype(dtype)
        return value.copy() if copy else value

    def __bool__(self):
        if self._spec.aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
                if self._spec.aval.size
                else "The truth value of an empty array is ambiguous. "
                "Use `array.size > 0` to check that an array is not empty."
            )
        return bool(self._value.item())

    def _scalar(self):
        if self._spec.aval.ndim:
            raise TypeError(
                "Only scalar arrays can be converted to Python scalars; got arr.ndim="
                f"{self._spec.aval.ndim}"
            )
        return self._value[()]

    def __int__(self):
        return int(self._scalar())

    def __float__(self):
        return float(self._scalar())

    def __complex__(self):
        return complex(self._scalar())

    def __index__(self):
        aval = self._spec.aval
        if aval.ndim or aval.dtype.kind not in "iu":
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return int(self._value[()])

    def item(self, *args):
        """One element as a Python scalar."""
        if not args and self._spec.aval.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._value.item(*args)

    def tolist(self):
        """The elements as nested lists."""
        return self._value.tolist()

    def tobytes(self, order="C") -> bytes:
        """The elements' bytes in row-major order."""
        return self._value.tobytes(order)

    def __hash__(self):
        raise TypeError(f"unhashable type: {type(self).__name__!r}")

    def __buffer__(self, flags):
        self._check_alive()
        return memoryview(self._buf)

    def __reduce__(self):
        return _restore, (self._value.copy(), self._spec.aval.weak_type)

    def __copy__(self):
        return copy_array(self)

    def __deepcopy__(self, memo):
        return copy_array(self)

    def unsafe_buffer_pointer(self) -> int:
        """Address of the first byte; invalid as soon as the array is gone."""
        self._check_alive()
        return memoryview_address(self._buf)

    # Text

    def __repr__(self):
        aval = self._spec.aval
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            return aval.dtype.repr_of(self)
        value = self._value
        notes = [f"dtype={aval.dtype.name}"]
        if aval.weak_type:
            notes.append("weak_type=True")
        if not aval.size:
            return f"Array([], shape={aval.shape}, {', '.join(notes)})"
        body = np.array2string(value, separator=", ", prefix="Array(")
        line = body[body.rfind("\n") + 1 :]
        tail = f", {', '.join(notes)})"
        start = len(line) + (len("Array(") if "\n" not in body else 0)
        if start + len(tail) > np.get_printoptions()["linewidth"]:
            tail = "," + "\n" + " " * len("Array(") + tail[2:]
        return f"Array({body}{tail}"

    def __str__(self):
        if isinstance(self._spec.aval.dtype, dtypes.ExtendedDType):
            return repr(self)
        return str(self._value)

    def __format__(self, spec):
        if not self._spec.aval.ndim:
            return format(self._value[()], spec)
        if spec:
            raise TypeError("unsupported format string passed to Array.__format__")
        return str(self)


def memoryview_address(buf) -> int:
    """Address of a raw buffer's memory."""
    return to_host(buf).__array_interface__["data"][0]


def _restore(value: np.ndarray, weak_type: bool) -> ArrayImpl:
    array = put(value)
    return retyped(array, array.aval.update(weak_type=weak_type))


def retyped(array: ArrayImpl, aval: ShapedArray) -> ArrayImpl:
    """The same buffer under another aval of the same physical type."""
    spec = array._spec
    return spec_of(aval, spec.sharding, spec.committed).wrap(array._buf)


# Transfers

_SEMANTICS = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


def put(x: Any, sharding=None, aval: ShapedArray | None = None) -> ArrayImpl:
    """An array from NumPy values, copied; committed when a sharding is given."""
    committed = sharding is not None
    if sharding is None:
        sharding = default_sharding()
    value = np.asarray(x) if aval is None else np.asarray(x, physical(aval).dtype)
    dtype = dtypes.canonicalize_dtype(value.dtype)
    if value.dtype != dtype:
        value = value.astype(dtype)
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if aval is None:
        aval = ShapedArray(value.shape, dtype)
    spec = spec_of(aval, sharding, committed)
    if not isinstance(sharding, SingleDeviceSharding):
        return spec.wrap(sharding._put(value, physical(aval)))
    buf = _jax.batched_device_put(
        physical(aval), sharding._raw, [value], [sharding._device],
        committed=True, host_buffer_semantics=_SEMANTICS, enable_x64=True,
    )  # fmt: skip
    return spec.wrap(buf)


def default_sharding() -> SingleDeviceSharding:
    """Where uncommitted values go."""
    key = state.key
    found = _default_shardings.get(key)
    if found is None:
        found = _default_shardings[key] = SingleDeviceSharding(_devices.default_device())
    return found


_default_shardings: dict[Any, SingleDeviceSharding] = {}


def move(array: ArrayImpl, sharding, committed: bool = True) -> ArrayImpl:
    """The array on another device; the same buffer where it lies there already."""
    array._check_alive()
    spec = array._spec
    if spec.sharding is sharding:
        return spec_of(spec.aval, sharding, committed).wrap(array._buf)
    if isinstance(sharding, SingleDeviceSharding) and isinstance(
        spec.sharding, SingleDeviceSharding
    ):
        target = sharding._device
        if target.client is spec.sharding._device.client:
            (buf,) = _jax.batched_copy_array_to_devices_with_sharding(
                [array._buf], [sharding._device_list], [sharding._raw],
                [_jax.ArrayCopySemantics.REUSE_INPUT],
            )  # fmt: skip
            return spec_of(spec.aval, sharding, committed).wrap(buf)
    moved = put(to_host(array._buf), sharding, spec.aval)
    return moved if committed else spec_of(spec.aval, sharding, False).wrap(moved._buf)


def copy_array(array: ArrayImpl) -> ArrayImpl:
    """A new buffer with the same values."""
    array._check_alive()
    moved = put(to_host(array._buf), array._spec.sharding, array._spec.aval)
    return array._spec.wrap(moved._buf)
