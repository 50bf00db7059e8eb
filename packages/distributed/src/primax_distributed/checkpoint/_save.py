"""Saving: copies to the host, files, and the commit."""

from __future__ import annotations

import json
import operator
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from primax_core import tree_util
from primax_core.typing import PyTree

from ._database import create_own_folder, merge, write_arrays
from ._errors import CheckpointError, CheckpointMismatchError
from ._folders import Folder, Place, begin, checked_path, commit, folder_at, remove
from ._leaves import Values, describe
from ._metadata import to_bytes
from ._stores import run
from ._structure import encode, path_of
from ._together import Group


@dataclass
class Pending:
    """A checkpoint whose values are copied, but not written."""

    path: Place
    step: int
    overwrite: bool
    concurrent_bytes: int
    group: Group
    structure: Any
    records: list[dict[str, Any]]
    arrays: dict[int, Values]

    def write(self) -> None:
        """Write and commit it, together with the other processes.

        Raises:
          CheckpointError: this or another process failed. There is no new checkpoint then.
        """
        group = self.group
        temporary = self._begin()
        error: BaseException | None = None
        try:
            self._check_same(temporary["digest"])
            folder = create_own_folder(folder_at(temporary["folder"]), group.rank, group.size)
            arrays, self.arrays = self.arrays, {}
            run(write_arrays(folder, arrays, self.concurrent_bytes))
        except BaseException as e:
            error = e
        group.report("written", error)
        if group.rank == 0:
            group.share("committed", error=self._commit(folder_at(temporary["folder"]), error))
        elif error is not None:
            raise error
        else:
            group.share("committed")

    def _begin(self) -> Any:
        if self.group.rank:
            return self.group.share("begun")
        try:
            folder = begin(self.path, self.step, self.overwrite)
        except BaseException as e:
            return self.group.share("begun", error=e)
        return self.group.share("begun", {"folder": str(folder), "digest": self._digest()})

    def _commit(self, temporary: Folder, error: BaseException | None) -> BaseException | None:
        group = self.group
        try:
            if error is None:
                group.collect("written")
                if group.size > 1:
                    run(merge(temporary, group.size))
                metadata = to_bytes(self.step, group.size, self.structure, self.records)
                commit(self.path, self.step, temporary, metadata, self.overwrite)
        except BaseException as e:
            error = e
        if error is not None:
            with suppress(CheckpointError):  # the first error is the one to report
                remove(temporary)
        return error

    def _digest(self) -> int:
        """Equal in all processes that save the same tree."""
        # Values of Python numbers and NumPy arrays are those of rank 0.
        records = [{**r, "value": None} for r in self.records]
        return zlib.crc32(json.dumps([self.step, self.structure, records]).encode())

    def _check_same(self, digest: int) -> None:
        if digest != self._digest():
            raise CheckpointMismatchError(
                f"rank {self.group.rank} saves step {self.step} with another structure, other "
                "shapes, dtypes or shardings than rank 0"
            )


def prepare(
    path: str | os.PathLike[str],
    tree: PyTree,
    step: int,
    overwrite: bool,
    concurrent_bytes: int,
    timeout: float,
) -> Pending:
    """Copy the values of a tree to the host.

    Raises:
      TypeError: a leaf cannot be saved, or the step is not an integer.
      ValueError: the step is negative, or the path is an address that tensorstore does not know.
    """
    path = checked_path(path)
    step = operator.index(step)
    if step < 0:
        raise ValueError(f"the step of a checkpoint must not be negative, got {step}")
    group = Group(timeout)
    arrays: dict[int, Values] = {}
    records = []
    try:
        leaves, _ = tree_util.tree_flatten_with_path(tree)
        for number, (keys, leaf) in enumerate(leaves):
            record, values = describe(path_of(keys), leaf, group.rank == 0)
            records.append(record)
            if values is not None and (values.parts or group.rank == 0):
                arrays[number] = values
        structure = encode(tree)
    except Exception as e:
        group.fail(e)
        raise
    return Pending(path, step, overwrite, concurrent_bytes, group, structure, records, arrays)


def save(
    path: str | os.PathLike[str],
    tree: PyTree,
    step: int,
    *,
    overwrite: bool = False,
    concurrent_bytes: int = 1 << 30,
    timeout_seconds: float = 300,
) -> None:
    """Save a tree of arrays as the checkpoint of a step, and wait until it is complete.

    The checkpoint appears at once when it is complete. If the process ends before, at any point,
    there is no such step, and earlier checkpoints are as before. Each process writes the parts of
    its devices, and each part is written once.

    Args:
      path: a folder for the checkpoints of all steps, which is created, or an address in an
        object store such as ``gs://bucket/run``. If there are several processes, all of them must
        see the same one.
      tree: a pytree of arrays (also sharded ones and random keys), NumPy arrays, and Python
        numbers and strings. Of NumPy arrays, Python values, and arrays on the devices of one
        process, those of rank 0 are written.
      step: the number of the checkpoint, not negative.
      overwrite: replace a checkpoint of the same step, once the new one is complete.
      concurrent_bytes: limit of the bytes that are encoded at the same time.
      timeout_seconds: limit of the time to wait for other processes.

    Raises:
      CheckpointExistsError: the step exists, or another writer was faster.
      CheckpointWriteError: no space, no permission, or another process failed.
      CheckpointMismatchError: the processes save different trees.
      TypeError: a leaf cannot be saved; the message contains its path.

    >>> import tempfile, numpy as np
    >>> from primax_distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> checkpoint.save(folder, {"w": np.arange(3.0), "name": "linear"}, step=100)
    >>> checkpoint.restore(folder)
    {'name': 'linear', 'w': array([0., 1., 2.])}
    """
    prepare(path, tree, step, overwrite, concurrent_bytes, timeout_seconds).write()
