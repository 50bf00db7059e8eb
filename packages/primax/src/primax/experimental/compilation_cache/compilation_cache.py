"""Folder of the cache of executables on disk, by the reference's names."""

from __future__ import annotations

import os as _os

import primax_core as _core


def set_cache_dir(path: str | _os.PathLike[str]) -> None:
    """Set the folder of the cache: the option ``compilation_cache_dir``."""
    _core.config.update("compilation_cache_dir", _os.fspath(path))


def reset_cache() -> None:
    """Delete the executables in memory, so that the next calls read the folder again."""
    _core.clear_caches()
