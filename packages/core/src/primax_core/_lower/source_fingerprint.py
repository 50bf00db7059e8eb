"""Fingerprint of the source files that lowering depends on."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from types import ModuleType
from typing import Final

import ml_dtypes
import numpy as np

from .._base.digest import digest
from .._base.identity import ROOT, is_own

# A file changed after this time may differ from the source that this process imported.
_STARTED: Final = time.time_ns() - 10 * 10**9

_packages: dict[str, tuple | None] = {}
"""Fingerprints of packages that called `trusted_rules`; ``None`` if their files may differ from the
imported ones."""


@cache
def stamp() -> bytes | None:
    """A digest that is equal in two processes only if they imported the same sources.

    It covers the data that version control systems use to detect changed files: names, sizes, times
    of writing and of change, and inodes. The last two cannot be forged without the clock. ``None``
    if the files may differ from the imported ones, or if there are no files.
    """
    global _stamp
    if _stamp is _NOT_TAKEN:
        _stamp = _take(_STARTED)
    if _stamp is None:
        return None
    trusted = sorted((name, files) for name, files in _packages.items() if files is not None)
    return digest(repr((_stamp, trusted)).encode())


def is_trusted_module(module: object) -> bool:
    """Return True if a module of this name belongs to the core or to a trusted package."""
    if is_own(module):
        return True
    if not _packages or not isinstance(module, str):
        return False
    return any(
        files is not None and (module == name or module.startswith(name + "."))
        for name, files in _packages.items()
    )


def trusted_rules(package: str) -> None:
    """Let the cache on disk find executables that depend on the rules of a package.

    Call it in the package's ``__init__.py``. The package's files join the fingerprint of sources in
    the keys of the cache, and its lowering rules count as the core's own. Otherwise each process
    lowers again: all jaxprs if the package overrides a rule of the core, or those that contain one
    of its primitives.

    By this call the author of the package states that the rules of kinds ``lower``, ``abstract``
    and ``effects`` depend on nothing but their arguments, the options of Primax and the files in
    the package's folder: not on environment variables, other packages, other files, or global
    variables that change. A rule may be a closure over numbers, texts, dtypes, other such
    functions, and tuples, lists and dicts of them; these join the key.

    If a file of the package changed later than ten seconds before the core was imported, or if the
    package was not imported from files, the call has no effect. All files of the folder are looked
    up, without reading them, in about 2 µs each.

    Args:
      package: import name of the package that is being imported: ``__name__`` in its
        ``__init__.py``. A part of a package is possible if it has a folder of its own.

    Returns:
      ``None``.

    Raises:
      TypeError: ``package`` is not a string.
      ValueError: the package is not being imported, is a part of the core, or is not a package with
        an ``__init__.py``.
    """
    if not isinstance(package, str):
        raise TypeError(f"trusted_rules: expected the name of a package, got {package!r}")
    if is_own(package):
        raise ValueError(
            f"trusted_rules: {package} belongs to {ROOT}, whose rules are trusted already"
        )
    files = _take(_STARTED, _checked(package))
    before = _packages.get(package, files)
    # A file that changed since the first call: the rules may be of either version.
    _packages[package] = files if before == files else None
    stamp.cache_clear()


def _checked(package: str) -> ModuleType:
    """The module of a package that is being imported."""
    module = sys.modules.get(package)
    if module is None:
        raise ValueError(
            f"trusted_rules: no package {package!r} is imported; call it in the __init__.py of the "
            "package, with __name__"
        )
    file = getattr(module, "__file__", None)
    if not hasattr(module, "__path__"):
        raise ValueError(
            f"trusted_rules: {package} is a single module; its rules must be in a package, whose "
            "folder contains all files that they depend on"
        )
    if file is None:
        raise ValueError(
            f"trusted_rules: {package} is a namespace package, whose files may be anywhere; pass "
            "the name of a package with an __init__.py"
        )
    frame = sys._getframe(2)
    while frame.f_code.co_name != "<module>" or frame.f_globals is not vars(module):
        if frame.f_back is None:
            raise ValueError(
                f"trusted_rules: {package} was imported before this call, and its files may have "
                f"changed since; call it in {file}"
            )
        frame = frame.f_back
    return module


def _take(started: int, module: ModuleType | None = None) -> tuple | None:
    """Names, sizes and times of the files of a package, by default the core."""
    module = sys.modules[ROOT] if module is None else module
    path = getattr(module, "__file__", None)
    if path is None or not os.path.isfile(path):
        return None
    folders = sorted(
        {os.path.dirname(os.path.abspath(path)), *map(os.path.abspath, module.__path__)}
    )
    try:
        entries = sorted(e for f in folders for e in _files(f, ""))
    except OSError:
        return None
    if any(max(written, changed) > started for _, _, written, changed, _ in entries):
        return None
    return (module.__name__, path, sys.version, np.__version__, ml_dtypes.__version__, *entries)


def _files(folder: str, name: str) -> list[tuple]:
    listed = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    listed.extend(_files(entry.path, f"{name}{entry.name}/"))
            else:
                s = entry.stat()
                listed.append(
                    (name + entry.name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino)
                )
    return listed


# Taken for the first key: packages call `trusted_rules` in processes that compile nothing.
_NOT_TAKEN: Final = ()
_stamp: tuple | None = _NOT_TAKEN
