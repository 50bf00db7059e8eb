"""Files of the cache: reading, writing and evicting, concurrently with other processes.

A file appears complete, under its final name, and is never changed. A missing or damaged file is
treated as a cache miss. Two processes that evict at once remove the same least recently used files.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from typing import Final

from . import files
from .files import Damaged, Entry
from .folder import Folder, Unusable, check_owner

DEFAULT_LIMIT: Final = 1 << 30
EXECUTABLE: Final = ".xla"
LINK: Final = ".link"
_TEMPORARY: Final = ".tmp"
_OURS: Final = re.compile(r"[0-9a-f]{64}(\.xla|\.link|\.[0-9a-f]+\.tmp)")

# The time of last use is updated only if it is older than this, so that most reads write nothing.
_FRESH: Final = 3600.0
# Temporary files of a process that died are removed after this time.
_ABANDONED: Final = 3600.0
_BLOCK: Final = 4096
# Eviction frees this additional fraction of the limit, so that it does not run at each write.
_SLACK: Final = 0.1


class File:
    """One file of the cache: its name, its size in bytes, and its time of last use."""

    __slots__ = ("name", "size", "used")

    def __init__(self, name: str, size: int, used: float):
        self.name = name
        self.size = size
        self.used = used


def read(path: str, key: bytes, suffix: str) -> bytes | None:
    """The bytes of the file of a key, unchecked; ``None`` if it does not exist.

    Raises:
      OSError: if it cannot be read; `Unsafe` if another user could have written it.
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
            if not stat.S_ISREG(status.st_mode) or status.st_size > files.LARGEST:
                raise Unusable(f"mode {status.st_mode:o}, {status.st_size} bytes")
            data = file.read(status.st_size)
        if not -_FRESH < time.time() - status.st_mtime < _FRESH:
            try:
                folder.touch(name)
            except OSError:
                pass
    return data


def write(path: str, key: bytes, suffix: str, data: bytes) -> int:
    """Store bytes under a key; return their size on disk, or 0 if they are already stored.

    Raises:
      OSError: if they cannot be written; no temporary file is left.
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
    """Size of a file on disk: at least one block, so that the limit also bounds their number."""
    return -(-size // _BLOCK) * _BLOCK


def evict(path: str, limit: int) -> int:
    """Remove the least recently used files above a limit in bytes; return the remaining bytes.

    Raises:
      OSError: if the folder cannot be read.
    """
    now = time.time()
    with Folder(path) as folder:
        files_by_age, total = [], 0
        for name, status in folder.scan():
            if _OURS.fullmatch(name) is None:
                continue
            if name.endswith(_TEMPORARY) and abs(now - status.st_mtime) > _ABANDONED:
                folder.remove(name)
                continue
            size = _room(status.st_size)
            total += size
            used = status.st_mtime if status.st_mtime < now + _FRESH else 0.0
            files_by_age.append((used, name, size))
        if total <= limit:
            return total
        files_by_age.sort()
        for _, name, size in files_by_age:
            if total <= limit * (1 - _SLACK):
                break
            if not name.endswith(_TEMPORARY):
                folder.remove(name)
                total -= size
        return total


def listing(path: str) -> list[File]:
    """The files, the most recently used first; empty if the folder does not exist.

    Raises:
      OSError: if the folder cannot be read.
    """
    try:
        folder = Folder(path)
    except FileNotFoundError:
        return []
    with folder:
        listed = [
            File(name, status.st_size, status.st_mtime)
            for name, status in folder.scan()
            if _OURS.fullmatch(name) and not name.endswith(_TEMPORARY)
        ]
    return sorted(listed, key=lambda f: -f.used)


def clear(path: str) -> tuple[int, int]:
    """Remove the files of the cache and no others; return their number and their bytes.

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
    """Each file with its contents: an entry, a link's digest, or an error message."""
    for file in listing(path):
        name, _, suffix = file.name.partition(".")
        key = bytes.fromhex(name)
        contents: Entry | bytes | str
        try:
            data = read(path, key, "." + suffix)
            if data is None:
                continue
            unpack = files.unpack if "." + suffix == EXECUTABLE else files.unpack_link
            contents = unpack(data, key)
        except (Damaged, OSError) as e:
            contents = str(e)
        yield file, contents
