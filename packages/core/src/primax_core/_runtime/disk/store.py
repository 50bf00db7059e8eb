"""Files of the cache: read, written and evicted while other processes do the same.

A file appears whole, under its final name, and is never changed. Whoever finds it missing or
damaged does without. Two processes that evict at once remove the same files, the longest unused.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Final

from . import files
from .files import Damaged, Entry
from .folder import Folder, check_owner

DEFAULT_LIMIT: Final = 1 << 30
EXECUTABLE: Final = ".xla"
LINK: Final = ".link"
_TEMPORARY: Final = ".tmp"
_OURS: Final = re.compile(r"[0-9a-f]{64}(\.xla|\.link|\.[0-9a-f]+\.tmp)")

# A file's time of use is renewed when it is older than this, so that most uses write nothing.
_FRESH: Final = 3600.0
# What a process that died while writing has left is removed after this time.
_ABANDONED: Final = 3600.0
_BLOCK: Final = 4096
# Evicting goes below the limit by this share, so that it is not needed at each write.
_SLACK: Final = 0.1


class File:
    """One file of the cache: its name, its bytes, and when it was last used."""

    __slots__ = ("name", "size", "used")

    def __init__(self, name: str, size: int, used: float):
        self.name = name
        self.size = size
        self.used = used


def read(path: str, key: bytes, suffix: str) -> bytes | None:
    """The bytes of the file of a key, unchecked; ``None`` if there is none.

    Raises:
      OSError: if it cannot be read, `Unsafe` if it could be another user's.
    """
    name = key.hex() + suffix
    try:
        folder = Folder(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with folder:
        try:
            fd = folder.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return None
        with open(fd, "rb", buffering=0) as file:
            status = os.fstat(fd)
            check_owner(status, os.path.join(path, name))
            data = file.read()
        if not -_FRESH < time.time() - status.st_mtime < _FRESH:
            try:
                folder.touch(name)
            except OSError:
                pass
    return data


def write(path: str, key: bytes, suffix: str, data: bytes) -> int:
    """Keep bytes under a key; how much room they take, 0 if somebody has kept them already.

    Raises:
      OSError: if they cannot be written; nothing is left behind then.
    """
    name = key.hex() + suffix
    with Folder(path, create=True) as folder:
        if folder.exists(name):
            return 0
        temporary = f"{key.hex()}.{os.urandom(8).hex()}{_TEMPORARY}"
        fd = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with open(fd, "wb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
            folder.replace(temporary, name)
        except BaseException:
            folder.remove(temporary)
            raise
    return _room(len(data))


def remove(path: str, key: bytes, suffix: str) -> None:
    """Remove the file of a key."""
    with Folder(path) as folder:
        folder.remove(key.hex() + suffix)


def _room(size: int) -> int:
    """What a file takes: a block at least, so that the bound holds for their number too."""
    return -(-size // _BLOCK) * _BLOCK


def evict(path: str, limit: int) -> int:
    """Remove the longest unused files above a limit in bytes; the bytes that remain.

    Raises:
      OSError: if the folder cannot be read.
    """
    now = time.time()
    with Folder(path) as folder:
        found, total = [], 0
        for name, status in folder.scan():
            if _OURS.fullmatch(name) is None:
                continue
            if name.endswith(_TEMPORARY) and now - status.st_mtime > _ABANDONED:
                folder.remove(name)
                continue
            size = _room(status.st_size)
            total += size
            found.append((status.st_mtime, name, size))
        if total <= limit:
            return total
        found.sort()
        for _, name, size in found:
            if total <= limit * (1 - _SLACK):
                break
            if not name.endswith(_TEMPORARY):
                folder.remove(name)
                total -= size
        return total


def listing(path: str) -> list[File]:
    """The files, the latest used first; none where there is no folder.

    Raises:
      OSError: if the folder cannot be read.
    """
    try:
        folder = Folder(path)
    except FileNotFoundError:
        return []
    with folder:
        found = [
            File(name, status.st_size, status.st_mtime)
            for name, status in folder.scan()
            if _OURS.fullmatch(name) and not name.endswith(_TEMPORARY)
        ]
    return sorted(found, key=lambda f: -f.used)


def clear(path: str) -> tuple[int, int]:
    """Remove the files of the cache and nothing else; their number and their bytes.

    Raises:
      OSError: if the folder cannot be read.
    """
    count = size = 0
    try:
        folder = Folder(path)
    except FileNotFoundError:
        return 0, 0
    with folder:
        for name, status in folder.scan():
            if _OURS.fullmatch(name):
                folder.remove(name)
                count, size = count + 1, size + status.st_size
    return count, size


def check(path: str) -> Iterator[tuple[File, Entry | bytes | str]]:
    """Each file with what it holds: an entry, a link's digest, or what is wrong with it."""
    for file in listing(path):
        name, _, suffix = file.name.partition(".")
        key = bytes.fromhex(name)
        found: Entry | bytes | str
        try:
            data = read(path, key, "." + suffix)
            if data is None:
                continue
            unpack = files.unpack if "." + suffix == EXECUTABLE else files.unpack_link
            found = unpack(data, key)
        except (Damaged, OSError) as e:
            found = str(e)
        yield file, found
