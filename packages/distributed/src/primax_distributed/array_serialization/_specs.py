"""Specs: the addresses and formats of arrays in tensorstore."""

from __future__ import annotations

import os
import re
from typing import Any, Final

from primax_core import Array

from ..checkpoint._stores import chunk_shape

_REMOTE: Final = re.compile(r"(gs|s3)://([^/]+)/(.+)")
_DRIVERS: Final = {"gs": "gcs", "s3": "s3"}
_FILE_BYTES: Final = 2 << 30


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str],
    *,
    ocdbt: bool = False,
    process_idx: int | None = None,
    arr: Array | None = None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """The spec of an array at a path.

    Args:
      ckpt_path: a path, or ``gs://bucket/path`` or ``s3://bucket/path``.
      ocdbt: store all arrays of the parent folder in one database of few files. The path must be
        absolute then.
      process_idx: with ``ocdbt``, the process whose database it is: ``process_3`` in the folder.
      arr: an array from which the shape and the chunks are taken.
      driver: ``"zarr"`` or ``"zarr3"``.

    Raises:
      ValueError: the path is not absolute, or the address has no bucket or path.

    >>> get_tensorstore_spec("/tmp/w")
    {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/tmp/w'}}
    """
    path = os.path.normpath(ckpt_path).replace("gs:/", "gs://").replace("s3:/", "s3://")
    if ocdbt:
        if "://" not in path and not os.path.isabs(path):
            raise ValueError(f"with ocdbt=True the path must be absolute, got {ckpt_path}")
        folder, name = os.path.split(path)
        if process_idx is not None:
            folder = os.path.join(folder, f"process_{process_idx}")
        kvstore = {"driver": "ocdbt", "base": _kvstore(folder), "path": name}
    else:
        kvstore = _kvstore(path)
    spec: dict[str, Any] = {"driver": driver, "kvstore": kvstore}
    if arr is not None:
        spec["metadata"] = metadata_of(arr, driver)
    return spec


def _kvstore(path: str) -> dict[str, Any]:
    if "://" not in path:
        return {"driver": "file", "path": path}
    match = _REMOTE.fullmatch(path)
    if match is None:
        raise ValueError(
            f"The address {path} must have a bucket and a path: gs://bucket/path or "
            "s3://bucket/path"
        )
    return {"driver": _DRIVERS[match[1]], "bucket": match[2], "path": match[3]}


def metadata_of(arr: Any, driver: str) -> dict[str, Any]:
    """Metadata with a chunk for each part, or several for large parts."""
    chunks = chunk_shape(arr.sharding.shard_shape(arr.shape), arr.dtype.itemsize, _FILE_BYTES)
    if driver == "zarr3":
        grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
        return {
            "codecs": [],
            "shape": tuple(arr.shape),
            "data_type": arr.dtype.name,
            "chunk_grid": grid,
        }
    return {"compressor": {"id": "zstd"}, "shape": tuple(arr.shape), "chunks": chunks}
