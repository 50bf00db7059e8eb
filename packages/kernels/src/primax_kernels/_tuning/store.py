"""Results of measurements on disk, one file for each."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

from primax_core.extend.runtime import define_option

from .identity import Identity
from .records import Record, record_from_json

folder_option: Final[Any] = define_option(
    "kernel_tuning_dir",
    str,
    None,
    "none",
    "folder of the results of autotune; an empty string keeps them in memory alone",
    optional=True,
)


def folder() -> Path | None:
    """The folder of the option ``kernel_tuning_dir``, or one in the user's cache folder."""
    chosen = folder_option.value
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "primax-kernels" / "tuning"
    home = os.path.expanduser("~")
    return Path(home) / ".cache/primax-kernels/tuning" if os.path.isabs(home) else None


def _path(identity: Identity, directory: Path) -> Path:
    text = json.dumps(vars(identity), sort_keys=True)
    return directory / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def read(identity: Identity) -> Record | None:
    """The stored result, if there is one. A damaged file is ignored with a warning."""
    directory = folder()
    if directory is None:
        return None
    path = _path(identity, directory)
    try:
        record = record_from_json(json.loads(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        warnings.warn(
            f"the result of autotune in {path} cannot be read ({error}); it is ignored, and the "
            "next tuning replaces it",
            stacklevel=2,
        )
        return None
    return record if record.identity == identity else None


def write(record: Record) -> Path | None:
    """Store a result in the place of an earlier one; ``None`` if it cannot be stored.

    The file is renamed when it is complete, so that other processes never read a part of it.
    """
    directory = folder()
    if directory is None:
        return None
    path = _path(record.identity, directory)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_text(path, json.dumps(record.to_json(), indent=1))
    except OSError as error:
        warnings.warn(
            f"the result of autotune cannot be stored in {directory} ({error}); it is used in this "
            "process alone",
            stacklevel=2,
        )
        return None
    return path


def replace_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
