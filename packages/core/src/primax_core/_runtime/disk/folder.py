"""The folder of the cache: where it is, and whether only this user can write there."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Final

from ..._base.config import state

NAME: Final = "primax"

# With descriptors of folders a name is looked up in the folder that was checked, whatever happens
# to its path meanwhile. Windows has neither them nor owners; a user's profile is private there.
_DESCRIPTORS: Final = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class Unsafe(OSError):
    """Somebody else could have written what is read here."""


def location() -> str | None:
    """The folder of the user's choice, or the customary one; ``None`` where there is none."""
    chosen = state.compilation_cache_dir
    if chosen:
        if "://" in chosen:
            raise Unsafe(f"compilation_cache_dir={chosen!r} is not a folder of this machine")
        return os.path.abspath(os.path.expanduser(chosen))
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return os.path.join(base, NAME)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return os.path.join(base, NAME, "Cache") if base else None
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", NAME)
    return os.path.join(home, ".cache", NAME)


class Folder:
    """An open folder that belongs to this user alone.

    It is opened anew for each use: programs close descriptors that they do not know, and folders
    vanish.

    Raises:
      Unsafe: if another user owns it or could write there.
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
        """A descriptor of a file in the folder; a new file is this user's alone."""
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        flags |= getattr(os, "O_BINARY", 0)
        return os.open(self._prefix + name, flags, 0o600, dir_fd=self.fd)

    def replace(self, old: str, new: str) -> None:
        """Give a file another file's name in one step."""
        os.replace(self._prefix + old, self._prefix + new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Remove a file, which another process may have done already."""
        try:
            os.unlink(self._prefix + name, dir_fd=self.fd)
        except FileNotFoundError:
            pass

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        try:
            os.stat(self._prefix + name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def touch(self, name: str) -> None:
        """Note that a file was used now."""
        os.utime(self._prefix + name, dir_fd=self.fd)

    def scan(self) -> list[tuple[str, os.stat_result]]:
        """All plain files, with their sizes and times."""
        found = []
        with os.scandir(self.path if self.fd is None else self.fd) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    found.append((entry.name, status))
        return found


def check_owner(status: os.stat_result, path: str) -> None:
    """Refuse what another user owns or could write.

    Raises:
      Unsafe: saying which.
    """
    if not _DESCRIPTORS:
        return
    user = os.geteuid()
    if status.st_uid != user:
        raise Unsafe(f"{path} belongs to user {status.st_uid}, and this is user {user}")
    if status.st_mode & _OTHERS_WRITE:
        raise Unsafe(
            f"other users could write to {path} (mode {stat.S_IMODE(status.st_mode):o}); "
            "chmod go-w would mend that if its contents can be trusted, and removing it if not"
        )


def _make(path: str) -> None:
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        above, below = os.path.dirname(above), above
        if above == below:
            raise FileNotFoundError(path)
    # As root, in the home of somebody else: folders made there would shut out their owner.
    if _DESCRIPTORS and os.stat(above).st_uid not in (os.geteuid(), 0):
        raise PermissionError(errno.EACCES, "belongs to another user", above)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
