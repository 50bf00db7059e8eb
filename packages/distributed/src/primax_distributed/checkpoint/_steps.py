"""Steps of a folder: the complete ones, what they contain, and their removal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from primax_core import ShapeDtypeStruct, enable_x64, process_index
from primax_core.extend import dtypes

from ._folders import checked_path, folder_of, folders, remove, remove_remains
from ._leaves import SCALAR_TYPES, decoded
from ._metadata import read
from ._structure import decode

PathLike = str | os.PathLike[str]


def steps(path: PathLike) -> list[int]:
    """The numbers of the complete checkpoints, in ascending order.

    The list is empty if the folder does not exist: :func:`save` creates it.

    Raises:
      CheckpointNotFoundError: the path is a file.

    >>> import os, tempfile
    >>> steps(os.path.join(tempfile.mkdtemp(), "new"))
    []
    """
    path = checked_path(path)
    return [] if isinstance(path, Path) and not path.exists() else [*folders(path)]


def describe(path: PathLike, step: int | None = None) -> Any:
    """The tree of a checkpoint, with a ``ShapeDtypeStruct`` for each array; nothing else is read.

    Args:
      path: the folder of :func:`save`.
      step: the number of the checkpoint, by default the last one.

    Raises:
      CheckpointNotFoundError: the path has no complete checkpoint.
      CheckpointDamagedError: the metadata are truncated or changed.

    >>> import tempfile, numpy as np
    >>> from primax_distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> checkpoint.save(folder, {"w": np.zeros((2, 3), np.float32), "epoch": 4}, step=1)
    >>> checkpoint.describe(folder)
    {'epoch': 4, 'w': ShapeDtypeStruct(shape=(2, 3), dtype=float32)}
    """
    _, folder = folder_of(checked_path(path), step)
    metadata = read(folder)
    return decode(metadata["structure"], lambda n: _described(metadata["leaves"][n]))


def structure(path: PathLike, step: int | None = None) -> Any:
    """The containers of a checkpoint, as they were written; errors as for :func:`describe`."""
    _, folder = folder_of(checked_path(path), step)
    return read(folder)["structure"]


def _described(record: dict[str, Any]) -> Any:
    if record["kind"] in SCALAR_TYPES:
        return decoded(record)
    name = record["dtype"]
    dtype = dtypes.extended_dtypes.get(name) or dtypes.as_dtype(name)
    with enable_x64(True):  # the dtype as it was saved
        return ShapeDtypeStruct(tuple(record["shape"]), dtype)


def prune(path: PathLike, keep: int, *, remains_after_seconds: float = 3600) -> list[int]:
    """Remove old checkpoints, and what killed writers left.

    In several processes, rank 0 removes and the others do nothing.

    Args:
      path: the folder of :func:`save`.
      keep: the number of checkpoints that stay, the last ones.
      remains_after_seconds: incomplete checkpoints are removed if nothing was written to them for
        so long.

    Returns:
      The numbers of the removed checkpoints.

    Raises:
      ValueError: ``keep`` is not positive.
      CheckpointNotFoundError: the path is no folder.

    >>> import tempfile, numpy as np
    >>> from primax_distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> for step in range(4):
    ...     checkpoint.save(folder, {"w": np.zeros(2)}, step)
    >>> checkpoint.prune(folder, keep=2), checkpoint.steps(folder)
    ([0, 1], [2, 3])
    """
    if keep < 1:
        raise ValueError(f"prune keeps at least one checkpoint, got keep={keep}")
    path = checked_path(path)
    known = folders(path)
    old = [*known][:-keep]
    if process_index() == 0:
        for step in old:
            remove(known[step])
        remove_remains(path, remains_after_seconds)
    return old
