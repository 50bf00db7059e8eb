"""Writing of a copy: prepared in a folder of its own, then moved into place.

A run that is interrupted is undone: by itself if Python ends it, otherwise by the next run, with
the journal that is written before the first folder moves.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .target import CORE, Refused

_JOURNAL: Final = "journal.json"
_MOVING: Final = "moving"
_SUFFIX: Final = ".vendoring"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Exclude other runs that write to the folder, where the system can.

    Raises:
      Refused: another run writes to it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another run of {CORE}.vendor writes to {folder}; wait for it") from None
        yield
    finally:
        os.close(fd)


def interrupted(folder: Path, name: str) -> bool:
    """Return True if an earlier run did not finish."""
    return os.path.lexists(_stage(folder, name))


def recover(folder: Path, name: str) -> None:
    """Undo or finish a run that was interrupted.

    Raises:
      Refused: the folder of such a run exists, but no run made it.
    """
    stage = _stage(folder, name)
    if not os.path.lexists(stage):
        return
    try:
        journal = json.loads((stage / _JOURNAL).read_text("utf-8"))
        old, new = list(journal["old"]), list(journal["new"])
    except (OSError, ValueError, KeyError, TypeError):
        if stage.is_dir() and not stage.is_symlink() and not any(stage.iterdir()):
            stage.rmdir()
            return
        raise Refused(f"{stage} was not made by {CORE}.vendor, which needs this name") from None
    unfinished = any((stage / "new" / n).exists() for n in new)
    if unfinished and (stage / _MOVING).exists():
        _move_back(folder, stage, old, new)
    shutil.rmtree(stage)


def write(folder: Path, name: str, files: dict[str, bytes], old: list[str]) -> None:
    """Replace the folders ``old`` by the files of a copy, all or none.

    Args:
      folder: the folder of the copies.
      name: name of the core's copy.
      files: contents by path relative to ``folder``.
      old: names of the folders of the copy that is replaced.

    Raises:
      OSError: a file cannot be written; the folder is as before.
    """
    stage = _stage(folder, name)
    new = sorted({path.partition("/")[0] for path in files})
    old = [n for n in old if (folder / n).exists()]
    stage.mkdir()
    try:
        journal = json.dumps({"made_by": CORE, "old": old, "new": new})
        (stage / _JOURNAL).write_text(journal, "utf-8")
        (stage / "old").mkdir()
        for path, data in files.items():
            file = stage / "new" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        (stage / _MOVING).touch()
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    try:
        for n in old:
            os.rename(folder / n, stage / "old" / n)
        for n in new:
            os.rename(stage / "new" / n, folder / n)
    except BaseException:
        _move_back(folder, stage, old, new)  # if this fails, the next run repeats it
        shutil.rmtree(stage)
        raise
    shutil.rmtree(stage)


def _move_back(folder: Path, stage: Path, old: list[str], new: list[str]) -> None:
    for n in new:
        replaced = n not in old or (stage / "old" / n).exists()
        if replaced and not (stage / "new" / n).exists() and (folder / n).exists():
            os.rename(folder / n, stage / "new" / n)
    for n in old:
        if (stage / "old" / n).exists():
            os.rename(stage / "old" / n, folder / n)


def _stage(folder: Path, name: str) -> Path:
    return folder / f".{name}{_SUFFIX}"
