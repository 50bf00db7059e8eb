"""The folder of the cache: its path, and checks that only this user can write to it."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Final

from ..._base.config import state
from ..._base.identity import CACHE_FOLDER

# Names are looked up relative to a descriptor of the checked folder, even if its path changes
# meanwhile. Windows has no descriptors and no owners, but a user's profile is private there.
_DESCRIPTORS: Final = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class Unsafe(OSError):
    """Another user could have written the files of a folder."""


class Unusable(OSError):
    """A file is not one that the cache wrote."""


def location() -> str | None:
    """The folder set by the option, or the default folder; ``None`` if there is none."""
    chosen = state.compilation_cache_dir
    if chosen:
        if "://" in chosen:
            raise Unsafe(f"compilation_cache_dir={chosen!r} is not a folder of this machine")
        return os.path.abspath(os.path.expanduser(chosen))
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return os.path.join(base, CACHE_FOLDER)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return os.path.join(base, CACHE_FOLDER, "Cache") if base else None
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", CACHE_FOLDER)
    return os.path.join(home, ".cache", CACHE_FOLDER)


class Folder:
    """An open folder that only this user can write to.

    It is reopened for each use: programs may close unknown descriptors, and folders may be
    removed.

    Raises:
      Unsafe: if another user owns it or can write to it.
      OSError: if it cannot be opened.
    """

    __slots__ = ("path", "fd", "_prefix")

    def __init__(self, path: str, *, create: bool = False):
        self.path = path
        self.fd: int | None = None
        self._prefix = "" if _DESCRIPTORS else path + os.sep
        try:
            self._open()
        except FileNotFoundError:
            if not create:
                raise
            _make(path)
            self._open()

    def _open(self) -> None:
        if not _DESCRIPTORS:
            if not os.path.isdir(self.path):
                raise FileNotFoundError(self.path)
            return
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            check_owner(os.fstat(fd), self.path)
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def open(self, name: str, flags: int) -> int:
        """A descriptor of a file in the folder; a new file is readable by this user only."""
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        flags |= getattr(os, "O_BINARY", 0)
        return os.open(self._prefix + name, flags, 0o600, dir_fd=self.fd)

    def replace(self, old: str, new: str) -> None:
        """Rename a file over another one atomically."""
        os.replace(self._prefix + old, self._prefix + new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Remove a file, unless another process has already removed it."""
        try:
            os.unlink(self._prefix + name, dir_fd=self.fd)
        except FileNotFoundError:
            pass

    def exists(self, name: str) -> bool:
        """Return True if a file of this name exists."""
        try:
            os.stat(self._prefix + name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def touch(self, name: str) -> None:
        """Set the time of last use of a file to now."""
        os.utime(self._prefix + name, dir_fd=self.fd)

    def scan(self) -> list[tuple[str, os.stat_result]]:
        """All regular files, with their sizes and times."""
        entries_with_status = []
        with os.scandir(self.path if self.fd is None else self.fd) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    entries_with_status.append((entry.name, status))
        return entries_with_status


def check_owner(status: os.stat_result, path: str) -> None:
    """Raise an error for a file that another user owns or can write.

    Raises:
      Unsafe: with the reason.
    """
    if not _DESCRIPTORS:
        return
    user = os.geteuid()
    if status.st_uid != user:
        raise Unsafe(f"{path} belongs to user {status.st_uid}, and this is user {user}")
    if status.st_mode & _OTHERS_WRITE:
        raise Unsafe(
            f"other users can write to {path} (mode {stat.S_IMODE(status.st_mode):o}); run chmod "
            "go-w if its contents can be trusted, otherwise remove it"
        )


def _make(path: str) -> None:
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        above, below = os.path.dirname(above), above
        if above == below:
            raise FileNotFoundError(path)
    # As root, in another user's home: folders created there would be inaccessible to that user.
    if _DESCRIPTORS and os.stat(above).st_uid not in (os.geteuid(), 0):
        raise PermissionError(errno.EACCES, "belongs to another user", above)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
