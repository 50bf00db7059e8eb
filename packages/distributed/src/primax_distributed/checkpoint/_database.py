"""The arrays of a checkpoint, in a key-value database of few files.

Each array is a zarr array with a checksum for each chunk. In a checkpoint of several processes,
each of them writes a database of its own, and rank 0 adds their indices to a common one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import CheckpointDamagedError, CheckpointError, CheckpointWriteError, first_line
from ._folders import ARRAYS, Folder
from ._import import ts
from ._leaves import Values
from ._stores import CONTEXT, Bounds, ByteLimiter, finished, region, write_parts


def _kvstore(folder: Folder, key: str) -> dict[str, Any]:
    local = isinstance(folder, Path)
    return {
        "driver": "ocdbt",
        "base": {"driver": "file", "path": f"{folder}/"} if local else folder.address,
        "path": key,
        "config": {"compression": None, "max_inline_value_bytes": 1024},
    }


def create_own_folder(temporary: Folder, rank: int, size: int) -> Folder:
    """Create the folder of the database of one process.

    Raises:
      CheckpointWriteError: this process does not see the folder that rank 0 created.
    """
    folder = _own_folder(temporary, rank, size)
    if not isinstance(folder, Path):
        return folder  # keys need no folder
    try:
        folder.mkdir(exist_ok=True)
    except OSError as e:
        hint = " (all processes need the same file system)" if rank else ""
        raise CheckpointWriteError(f"{folder} cannot be written: {e.strerror}{hint}") from e
    return folder


def _own_folder(temporary: Folder, rank: int, size: int) -> Folder:
    """The folder of the database of one process."""
    common = temporary / ARRAYS
    return common if size == 1 else common / f"process_{rank}"


async def write_arrays(folder: Folder, arrays: dict[int, Values], concurrent_bytes: int) -> None:
    """Write the parts of this process.

    Raises:
      CheckpointWriteError: the file system refuses.
    """
    limiter = ByteLimiter(concurrent_bytes)

    async def write(number: int, values: Values) -> None:
        # The metadata of an array without elements is its whole content.
        codecs: list[dict[str, Any]] = [{"name": "crc32c"}]
        if values.dtype.itemsize > 1:
            codecs.insert(0, {"name": "bytes", "configuration": {"endian": "little"}})
        else:
            codecs.insert(0, {"name": "bytes"})
        grid = {"name": "regular", "configuration": {"chunk_shape": values.chunks}}
        spec = {
            "driver": "zarr3",
            "kvstore": _kvstore(folder, f"{number}/"),
            "store_data_equal_to_fill_value": True,
            "metadata": {
                "shape": list(values.shape),
                "data_type": values.dtype.name,
                "chunk_grid": grid,
                "codecs": codecs,
            },
        }
        store = await ts.open(spec, create=True, open=True, context=CONTEXT)
        await write_parts(store, values.parts, limiter)

    try:
        await finished([write(n, values) for n, values in arrays.items()])
    except (ValueError, OSError) as e:
        raise CheckpointWriteError(f"{folder} cannot be written: {first_line(e)}") from e


async def merge(temporary: Folder, size: int) -> None:
    """Add the databases of all processes to the common one.

    Raises:
      CheckpointWriteError: a process has not written its database, or the file system refuses.
    """
    try:
        common = await ts.KvStore.open(_kvstore(temporary / ARRAYS, ""), context=CONTEXT)
        for rank in range(size):
            folder = _own_folder(temporary, rank, size)
            if isinstance(folder, Path) and not folder.is_dir():
                raise CheckpointWriteError(
                    f"{folder}, written by rank {rank}, is missing: all processes need the same "
                    "file system"
                )
            if not any(folder.iterdir()) if isinstance(folder, Path) else folder.is_empty():
                continue  # its devices have no part of any array
            own = await ts.KvStore.open(_kvstore(folder, ""), context=CONTEXT)
            await own.experimental_copy_range_to(common)
    except (ValueError, OSError) as e:
        raise CheckpointWriteError(f"{temporary} cannot be completed: {first_line(e)}") from e


async def open_array(folder: Folder, number: int, record: dict[str, Any], name: str) -> Any:
    """A coroutine function that reads a part of an array.

    Raises:
      CheckpointDamagedError: the array is missing, or is not the one of the metadata.
    """
    spec = {
        "driver": "zarr3",
        "kvstore": _kvstore(folder / ARRAYS, f"{number}/"),
        "fill_missing_data_reads": False,
    }
    where = f"the array at {name} of the checkpoint in {folder}"
    store = await _checked(where, lambda: ts.open(spec, open=True, read=True, context=CONTEXT))
    shape, dtype = tuple(record["stored_shape"]), np.dtype(record["stored"])
    if store.shape != shape or store.dtype.numpy_dtype != dtype:
        raise CheckpointDamagedError(
            f"{where} has type {store.dtype.name}{list(store.shape)}, but the metadata says "
            f"{dtype.name}{list(shape)}"
        )

    async def read(bounds: Bounds) -> np.ndarray:
        target = store[region(bounds)] if bounds else store
        values: np.ndarray = await _checked(where, target.read)
        return values

    return read


async def _checked(where: str, operation: Callable[[], Any]) -> Any:
    try:
        return await operation()
    except (ValueError, OSError) as e:
        reason = first_line(e)
        if "ermission denied" in reason or "PERMISSION_DENIED" in reason:
            raise CheckpointError(f"{where} cannot be read: {reason}") from e
        raise CheckpointDamagedError(f"{where} is damaged: {reason}") from e
