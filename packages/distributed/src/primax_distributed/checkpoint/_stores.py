"""Arrays in tensorstore: chunks, limits of memory, and parts that are written or read."""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import numpy as np

from primax_core import Array, device_put
from primax_core.extend.runtime import Sharding, SingleDeviceSharding, array_from_parts

from ._import import ts

Bounds = tuple[tuple[int, int], ...]
T = TypeVar("T")

CHUNK_BYTES: Final = 16 << 20
"""Largest chunk, if the sizes of a part can be divided."""

CONTEXT: Final = ts.Context(
    {"file_io_concurrency": {"limit": 64}, "data_copy_concurrency": {"limit": 16}}
)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also in a thread whose event loop runs, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()


class ByteLimiter:
    """Limit of the bytes that concurrent coroutines use.

    A request of more than the limit waits until all others are finished.

    Args:
      limit: the number of bytes.

    Raises:
      ValueError: if it is not positive.
    """

    def __init__(self, limit: int) -> None:
        if limit <= 0:
            raise ValueError(f"the limit must be a positive number of bytes, got {limit}")
        self.limit: int = limit
        self._available = limit
        self._condition = asyncio.Condition()

    async def wait_for_bytes(self, n: int) -> None:
        """Wait until ``n`` bytes are available, and use them."""
        n = min(n, self.limit)
        async with self._condition:
            await self._condition.wait_for(lambda: self._available >= n)
            self._available -= n

    async def release_bytes(self, n: int) -> None:
        """Make ``n`` bytes available again.

        Raises:
          ValueError: if they were not in use.
        """
        n = min(n, self.limit)
        async with self._condition:
            if self._available + n > self.limit:
                raise ValueError(
                    f"{n} bytes were released, but only {self.limit - self._available} are in use"
                )
            self._available += n
            self._condition.notify_all()


# Chunks


def chunk_shape(part: Sequence[int], itemsize: int, limit: int = CHUNK_BYTES) -> list[int]:
    """Sizes of chunks that divide a part evenly, so that each chunk has one writer.

    >>> chunk_shape((4096, 4096), 4, limit=1 << 20)
    [512, 512]
    """
    sizes = [max(1, n) for n in part]
    while math.prod(sizes) * itemsize > limit and max(sizes) > 1:
        axis = max(range(len(sizes)), key=sizes.__getitem__)
        sizes[axis] //= _smallest_factor(sizes[axis])
    return sizes


def _smallest_factor(n: int) -> int:
    for factor in range(2, math.isqrt(n) + 1):
        if n % factor == 0:
            return factor
    return n


# Parts


def bounds_of(index: Sequence[slice], shape: Sequence[int]) -> Bounds:
    """First position and end of a part along each axis."""
    return tuple([part.indices(size)[:2] for part, size in zip(index, shape, strict=True)])


def region(bounds: Bounds) -> tuple[slice, ...]:
    """The index of a part."""
    return tuple([slice(a, b) for a, b in bounds])


def host_parts(x: Array, replica_id: int = 0) -> list[tuple[Bounds, np.ndarray]]:
    """Copies of the parts of one replica that devices of this process have."""
    shards = [s for s in x.addressable_shards if s.replica_id == replica_id]
    for shard in shards:
        shard.data.copy_to_host_async()
    # On the CPU, NumPy arrays may share the memory of the device array, which may be donated.
    return [(bounds_of(s.index, x.shape), np.array(s.data, copy=True)) for s in shards]


async def write_parts(
    store: Any, parts: list[tuple[Bounds, np.ndarray]], limiter: ByteLimiter
) -> None:
    """Write parts, which are removed from the list, so that their memory is freed early."""

    async def write(bounds: Bounds, values: np.ndarray) -> None:
        await limiter.wait_for_bytes(values.nbytes)
        try:
            target = store[region(bounds)] if bounds else store
            await target.write(values, can_reference_source_data_indefinitely=True)
        finally:
            await limiter.release_bytes(values.nbytes)

    writes = []
    while parts:
        writes.append(write(*parts.pop()))
    await finished(writes)


async def finished(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. All of them end before the first error is raised."""
    # tensorstore calls the event loop when an operation ends, so the loop must not close before.
    results = await asyncio.gather(*coroutines, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


async def read_parts(
    read: Any, shape: Sequence[int], dtype: Any, sharding: Sharding, limiter: ByteLimiter
) -> Array:
    """An array of parts that are read once each, also if several devices have them.

    Args:
      read: a coroutine function from bounds to NumPy values.
      shape: the shape of the whole array.
      dtype: its dtype.
      sharding: its sharding; only parts of this process are read.
      limiter: limits the bytes on the host.
    """
    shape = tuple(shape)
    devices: dict[Bounds, list[Any]] = {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        devices.setdefault(bounds_of(index, shape), []).append(device)
    kind = sharding.memory_kind

    async def part(bounds: Bounds, owners: list[Any]) -> list[Array]:
        size = math.prod(b - a for a, b in bounds) * np.dtype(dtype).itemsize
        await limiter.wait_for_bytes(size)
        try:
            values = await read(bounds)
            arrays = [device_put(values, SingleDeviceSharding(d, memory_kind=kind)) for d in owners]
            for x in arrays:
                x.block_until_ready()
            return arrays
        finally:
            await limiter.release_bytes(size)

    parts = await finished([part(*item) for item in devices.items()])
    return array_from_parts(shape, sharding, [x for xs in parts for x in xs], dtype)
