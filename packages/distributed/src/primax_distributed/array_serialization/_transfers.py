"""Single arrays: written to tensorstore, and read with any sharding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from primax_core import Array, ShapeDtypeStruct, device_put, process_count, process_index
from primax_core.extend import dtypes
from primax_core.extend.runtime import Sharding
from primax_core.layout import Format
from primax_core.typing import DTypeLike

from ..checkpoint._import import ts
from ..checkpoint._stores import (
    CONTEXT,
    Bounds,
    ByteLimiter,
    finished,
    host_parts,
    read_parts,
    region,
)
from ._specs import metadata_of

CHUNK_LAYOUT: Final = ts.ChunkLayout({"chunk": {"elements": 100_000_000}})
_READ_BYTES: Final = 32 << 30


def _spec_json(spec: Any) -> dict[str, Any]:
    return dict(spec.to_json() if isinstance(spec, ts.Spec) else spec)


def checked_array(x: Any, name: str) -> None:
    """Check that an array can be written.

    Raises:
      TypeError: it is not an array, or its dtype has no representation in tensorstore.
      ValueError: in several processes, it is on devices of one process.
    """
    if not isinstance(x, Array):
        raise TypeError(
            f"{name} writes arrays, got {type(x).__name__}: convert it with device_put, or use "
            "primax_distributed.checkpoint.save, which writes trees with any leaves"
        )
    if isinstance(x.dtype, dtypes.ExtendedDType):
        raise TypeError(
            f"{name} cannot write arrays of {x.dtype}: write random.key_data(keys), or use "
            "primax_distributed.checkpoint.save, which writes keys too"
        )
    if process_count() > 1 and x.is_fully_addressable:
        raise ValueError(
            f"{name}: the array of shape {x.shape} is on devices of one of {process_count()} "
            "processes only, so they would overwrite each other's values. Use a sharding over the "
            "devices of all processes"
        )
    ts.dtype(x.dtype.name)


async def async_serialize(
    arr_inp: Array,
    tensorstore_spec: Mapping[str, Any] | ts.Spec,
    commit_future: list[Any] | None = None,
    context: ts.Context = CONTEXT,
    chunk_layout: ts.ChunkLayout = CHUNK_LAYOUT,
    primary_host: int | None = None,
    replica_id: int = 0,
    transaction: ts.Transaction | None = None,
) -> None:
    """Write the parts of an array that devices of this process have.

    Args:
      arr_inp: the array.
      tensorstore_spec: where and in which format, a dict or a ``tensorstore.Spec``. Shape and
        chunks are those of the array if the spec has none; the dtype always is.
      commit_future: a list to which a future for each part is added. Without it, this waits until
        the values are durable; with it, only until they are copied.
      context: a ``tensorstore.Context``.
      chunk_layout: a ``tensorstore.ChunkLayout`` for formats without metadata in the spec.
      primary_host: the process that writes the metadata; by default, every process does.
      replica_id: the replica whose values are written.
      transaction: a ``tensorstore.Transaction``.

    Raises:
      TypeError: it is not an array, or has another dtype than tensorstore has.
      ValueError: the store refuses, or the array is on the devices of one process of several.
    """
    checked_array(arr_inp, "async_serialize")
    await write(
        host_parts(arr_inp, replica_id), arr_inp, tensorstore_spec, commit_future, context,
        chunk_layout, primary_host, transaction,
    )  # fmt: skip


async def write(
    parts: list[tuple[Bounds, np.ndarray]], arr: Any, tensorstore_spec: Any,
    commit_future: list[Any] | None, context: Any = CONTEXT, chunk_layout: Any = CHUNK_LAYOUT,
    primary_host: int | None = None, transaction: Any = None,
) -> None:  # fmt: skip
    """Write copied parts; arguments as for :func:`async_serialize`."""
    spec = _spec_json(tensorstore_spec)
    if "metadata" not in spec and spec.get("driver") in ("zarr", "zarr3"):
        spec["metadata"] = metadata_of(arr, spec["driver"])
    spec["dtype"] = arr.dtype.name
    here = primary_host is None or process_index() == primary_host
    store = await ts.open(
        ts.Spec(spec), create=here, open=True, assume_metadata=not here, context=context,
        transaction=transaction, shape=None if "metadata" in spec else arr.shape,
        chunk_layout=None if "metadata" in spec else chunk_layout,
    )  # fmt: skip

    async def one(bounds: Bounds, values: np.ndarray) -> None:
        target = store[region(bounds)] if bounds else store
        pending = target.write(values, can_reference_source_data_indefinitely=True)
        if commit_future is None and transaction is None:
            await pending.commit
            return
        if commit_future is not None:
            commit_future.append(pending.commit)
        await pending.copy

    await finished([one(*part) for part in parts])


def _unpacked(in_type: Any) -> tuple[Sharding, Any, Any, Any]:
    """The sharding, the layout, the shape and the dtype that a request contains."""
    layout = shape = dtype = None
    sharding = in_type
    if isinstance(in_type, ShapeDtypeStruct):
        shape, dtype, sharding = in_type.shape, in_type.dtype, in_type.format
        if not isinstance(sharding, Format):
            sharding = in_type.sharding
    if isinstance(sharding, Format):
        sharding, layout = sharding.sharding, sharding.layout
    if not isinstance(sharding, Sharding):
        raise TypeError(
            "an array is read with a sharding, a Format that has one, or a ShapeDtypeStruct that "
            f"has one; got {in_type!r} of type {type(in_type).__name__}"
        )
    return sharding, layout, shape, dtype


async def async_deserialize(
    in_type: Sharding | Format | ShapeDtypeStruct,
    tensorstore_spec: Mapping[str, Any] | ts.Spec,
    global_shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    byte_limiter: Any = None,
    context: ts.Context = CONTEXT,
    chunk_layout: ts.ChunkLayout = CHUNK_LAYOUT,
    assume_metadata: bool = False,
) -> Array:
    """Read an array, in each process the parts of its devices.

    Args:
      in_type: a sharding, a ``Format``, or a ``ShapeDtypeStruct`` with a sharding.
      tensorstore_spec: the address, as for :func:`async_serialize`.
      global_shape: the shape of the result; by default the stored one. What the stored array
        lacks is zero, and what is beyond the shape is not read.
      dtype: the dtype of the result; by default the stored one.
      byte_limiter: limits the bytes of concurrent reads; an object with the coroutines
        ``wait_for_bytes(n)`` and ``release_bytes(n)``.
      context: a ``tensorstore.Context``.
      chunk_layout: a ``tensorstore.ChunkLayout``; its hard constraints must hold for the stored
        array.
      assume_metadata: use the metadata of the spec without reading those of the store.

    Raises:
      TypeError: ``in_type`` contains no sharding.
      ValueError: there is no such array, it does not meet ``chunk_layout``, or a size is not
        divisible by the sharding.
    """
    sharding, layout, shape, element = _unpacked(in_type)
    store = await ts.open(
        ts.Spec(_spec_json(tensorstore_spec)), open=True, read=True, context=context,
        assume_metadata=assume_metadata, chunk_layout=chunk_layout,
    )  # fmt: skip
    shape = tuple(shape if global_shape is None else global_shape) if (
        shape is not None or global_shape is not None
    ) else store.shape  # fmt: skip
    if len(shape) != len(store.shape):
        raise ValueError(
            f"the array in {tensorstore_spec} has shape {store.shape}, which has another number of "
            f"axes than the requested shape {shape}"
        )
    chosen = element if dtype is None else dtype
    result = dtypes.canonicalize_dtype(
        store.dtype.numpy_dtype if chosen is None else dtypes.as_dtype(chosen)
    )

    async def read(bounds: Bounds) -> np.ndarray:
        known = tuple([(a, min(b, n)) for (a, b), n in zip(bounds, store.shape)])
        if any(a >= b for a, b in known):
            return np.zeros([b - a for a, b in bounds], result)
        values = (await (store[region(known)] if known else store).read()).astype(result)
        if known == bounds:
            return np.asarray(values)
        return np.pad(values, [(0, b - m) for (_, b), (_, m) in zip(bounds, known)])

    limiter = ByteLimiter(_READ_BYTES) if byte_limiter is None else byte_limiter
    out = await read_parts(read, shape, result, sharding, limiter)
    return out if layout is None else device_put(out, Format(layout, sharding))
