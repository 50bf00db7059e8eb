"""Folders of steps: complete ones, temporary ones, commits and removal.

``PATH/120`` is the checkpoint of step 120, ``PATH/120.1`` the one that replaced it. A folder has
such a name from the moment it is complete: it is written under a temporary name and then renamed.
Object stores have their own layout, in `_buckets.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ._buckets import Bucket, BucketFolder
from ._errors import (
    CheckpointError,
    CheckpointExistsError,
    CheckpointNotFoundError,
    CheckpointWriteError,
)

METADATA: Final = "checkpoint.json"
ARRAYS: Final = "arrays"
_NAME: Final = re.compile(r"(0|[1-9]\d*)(?:\.([1-9]\d*))?")
_TEMPORARY: Final = ".writing-"
_REMOVED: Final = ".removed-"

Place = Path | Bucket
"""The checkpoints of all steps."""

Folder = Path | BucketFolder
"""One checkpoint."""


def checked_path(path: str | os.PathLike[str] | Place) -> Place:
    """The absolute path of a local folder, or an address in an object store.

    Raises:
      ValueError: if tensorstore has no such store.
    """
    if isinstance(path, Bucket):
        return path
    text = os.fspath(path)
    return Bucket(text) if isinstance(text, str) and "://" in text else Path(text).absolute()


def folder_at(text: str) -> Folder:
    """The folder that :func:`begin` returned in another process, from its text."""
    return BucketFolder.at(text) if "://" in text else Path(text)


def is_own_name(name: str, step: int) -> bool:
    """Return True for the names of folders of a step, complete, temporary or removed ones."""
    match = _NAME.fullmatch(name)
    if match is not None:
        return int(match[1]) == step
    return name.startswith((f"{_TEMPORARY}{step}-", f"{_REMOVED}{step}-", f"{_REMOVED}{step}."))


def folders(path: Place) -> Mapping[int, Folder]:
    """The complete checkpoints by step, in order.

    Raises:
      CheckpointNotFoundError: if the path does not exist or is no folder.
    """
    return path.folders() if isinstance(path, Bucket) else _local_folders(path)


def _local_folders(path: Path) -> dict[int, Path]:
    newest: dict[int, tuple[int, Path]] = {}
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError) as e:
        raise CheckpointNotFoundError(f"{path} is no folder of checkpoints: {e.strerror}") from e
    except OSError as e:
        raise CheckpointError(f"{path} cannot be read: {e.strerror}") from e
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None or not os.path.exists(path / name / METADATA):
            continue
        step, version = int(match[1]), int(match[2] or 0)
        if step not in newest or newest[step][0] < version:
            newest[step] = version, path / name
    return {step: newest[step][1] for step in sorted(newest)}


def folder_of(path: Place, step: int | None) -> tuple[int, Folder]:
    """A complete checkpoint, by default the last one.

    Raises:
      CheckpointNotFoundError: there is none.
    """
    known = folders(path)
    if not known:
        raise CheckpointNotFoundError(f"{path} has no complete checkpoint")
    if step is None:
        step = max(known)
    if step not in known:
        listed = ", ".join(map(str, [*known][-10:]))
        raise CheckpointNotFoundError(
            f"{path} has no complete checkpoint of step {step}; the last ones are {listed}"
        )
    return step, known[step]


def begin(path: Place, step: int, overwrite: bool) -> Folder:
    """Create the temporary folder of a new checkpoint.

    Raises:
      CheckpointExistsError: the step exists and ``overwrite`` is false.
      CheckpointWriteError: the folder cannot be created.
    """
    if isinstance(path, Bucket):
        _check_absent(path, step, overwrite)
        return BucketFolder.at(path.begin(step))
    try:
        path.mkdir(parents=True, exist_ok=True)
        _check_absent(path, step, overwrite)
        temporary = path / f"{_TEMPORARY}{step}-{uuid.uuid4().hex}"
        (temporary / ARRAYS).mkdir(parents=True)
    except OSError as e:
        if isinstance(e, CheckpointError):
            raise
        raise CheckpointWriteError(f"{path} cannot be written: {e.strerror}") from e
    return temporary


def _check_absent(path: Place, step: int, overwrite: bool) -> None:
    if not overwrite and step in folders(path):
        raise CheckpointExistsError(
            f"{path} has a checkpoint of step {step} already: pass overwrite=True to replace it"
        )


def commit(path: Place, step: int, temporary: Folder, metadata: bytes, overwrite: bool) -> None:
    """Make a temporary folder the checkpoint of a step, at once.

    Raises:
      CheckpointExistsError: another writer committed the step first.
      CheckpointWriteError: the metadata cannot be written.
    """
    if isinstance(path, Bucket) or isinstance(temporary, BucketFolder):
        assert isinstance(path, Bucket) and isinstance(temporary, BucketFolder)
        path.commit(step, temporary, metadata, overwrite)
        return
    try:
        with open(temporary / METADATA, "xb") as f:
            f.write(metadata)
            f.flush()
            os.fsync(f.fileno())
        for folder, _, _ in os.walk(temporary):
            _sync(folder)
        _check_absent(path, step, overwrite)
        # Without `overwrite`, the rename fails if another writer commits from here on.
        before = _local_folders(path).get(step) if overwrite else None
        version = 0 if before is None else int(_match(before)[2] or 0) + 1
        final = path / (f"{step}.{version}" if version else str(step))
        try:
            os.rename(temporary, final)
        except OSError as e:
            if not final.exists():
                raise
            raise CheckpointExistsError(
                f"another writer committed step {step} in {path} first; nothing was replaced"
            ) from e
        _sync(path)
    except OSError as e:
        if isinstance(e, CheckpointError):
            raise
        raise CheckpointWriteError(f"{temporary} cannot be committed: {e.strerror}") from e
    if before is not None:
        remove(before)


def _match(folder: Path) -> re.Match[str]:
    match = _NAME.fullmatch(folder.name)
    assert match is not None
    return match


def _sync(folder: str | Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(folder: Folder) -> None:
    """Remove a folder; it is no checkpoint from the first moment on."""
    if isinstance(folder, BucketFolder):
        folder.remove()
        return
    if folder.name.startswith((_TEMPORARY, _REMOVED)):
        shutil.rmtree(folder, ignore_errors=True)
        return
    hidden = folder.with_name(f"{_REMOVED}{folder.name}-{uuid.uuid4().hex}")
    os.rename(folder, hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def remove_remains(path: Place, older_than: float) -> None:
    """Remove folders that a killed writer left, if nothing changed in them for some seconds."""
    if isinstance(path, Bucket):
        path.remove_remains(older_than)
        return
    now = time.time()
    for name in os.listdir(path):
        folder = path / name
        match = _NAME.fullmatch(name)
        if match is not None:
            known = _local_folders(path).get(int(match[1]))
            if known is not None and known != folder and (folder / METADATA).exists():
                remove(folder)  # a replaced checkpoint, whose removal was interrupted
        elif name.startswith((_TEMPORARY, _REMOVED)) and now - _last_change(folder) > older_than:
            remove(folder)


def _last_change(folder: Path) -> float:
    times = []
    for file in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):
            times.append(file.stat().st_mtime)
    return max(times, default=0.0)
