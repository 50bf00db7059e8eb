"""jaxlib's executables, to the disk and back."""

from __future__ import annotations

import errno
import os
from typing import Any

from ..._base.config import state
from .. import custom_calls
from ..jaxlib_versions import build
from . import files, folder, keys, store, warn_once, writer
from .files import Damaged, Entry
from .folder import Unsafe


class Place:
    """Where a file lies, if it was kept: a folder, and the key in it."""

    __slots__ = ("path", "key")

    def __init__(self, path: str, key: bytes):
        self.path = path
        self.key = key


def is_on(devs: tuple) -> bool:
    """Whether programs for these devices are kept, the options permitting."""
    if not state.enable_compilation_cache:
        return False
    # A program over several processes is compiled by all of them together or by none.
    client = devs[0].client
    return all(d.process_index == client.process_index() for d in client.devices())


def path() -> str | None:
    """The folder, or ``None`` where there is none to use."""
    try:
        return folder.location()
    except Unsafe as e:
        warn_once.warn("The cache of compiled programs is not used: %s.", e)
    except OSError:  # a relative folder, and the current one is gone
        pass
    return None


def place_of(digest: bytes, devs: tuple, options: Any) -> Place | None:
    """Where the executable of a module, given by its digest, is looked for and kept."""
    where = path()
    if where is None:
        return None
    try:
        machine = keys.machine(devs)
    except Exception:  # a plug-in that cannot describe its devices
        return None
    return Place(where, keys.executable_key(digest, options.SerializeAsString(), machine))


def link_place(program: bytes, devs: tuple) -> Place | None:
    """Where the module of a program, given by its key, is looked up and noted."""
    where = path()
    if where is None:
        return None
    try:
        # Rules may ask what the devices are like.
        return Place(where, keys.link_key(program, keys.machine(devs)))
    except Exception:
        return None


def fetch(place: Place, devs: tuple, options: Any) -> Any | None:
    """jaxlib's executable, loaded from the disk; ``None`` if it is not there or not usable."""
    data = _read(place.path, place.key, store.EXECUTABLE)
    if data is None:
        return None
    try:
        entry = files.unpack(data, place.key)
        # Before anything of it reaches XLA, which looks native functions up by name.
        custom_calls.ensure(entry.needs)
        return devs[0].client.deserialize_executable(entry.blob, devs, options)
    except LookupError:
        return None
    except Exception as e:
        _damaged(place.path, place.key, store.EXECUTABLE, e)
        return None


def stored(place: Place) -> bytes | None:
    """jaxlib's bytes of an executable, as they were kept; ``None`` if they are not there."""
    data = _read(place.path, place.key, store.EXECUTABLE)
    try:
        return None if data is None else files.unpack(data, place.key).blob
    except Exception:
        return None


def link(place: Place) -> bytes | None:
    """The digest of the module that a program's key is known to lead to."""
    data = _read(place.path, place.key, store.LINK)
    if data is None:
        return None
    try:
        return files.unpack_link(data, place.key)
    except Damaged as e:
        _damaged(place.path, place.key, store.LINK, e)
        return None


def _read(where: str, key: bytes, suffix: str) -> bytes | None:
    try:
        return store.read(where, key, suffix)
    except Unsafe as e:
        warn_once.warn("The cache of compiled programs is not used: %s.", e)
    except (OSError, ValueError):  # a name that no folder can have
        pass
    return None


def _damaged(where: str, key: bytes, suffix: str, error: Exception) -> None:
    warn_once.warn(
        "A file of the cache of compiled programs, %s%s in %s, is damaged and was removed (%s).",
        key.hex(), suffix, where, error,
    )  # fmt: skip
    try:
        store.remove(where, key, suffix)
    except OSError:
        pass


# Writing

# Set when a file could not be written: neither will the next ones be.
_stopped = False


def keep(
    place: Place, loaded: Any, name: str, platform: str, needs: frozenset[str], seconds: float
) -> None:
    """Write an executable when there is time.

    ``loaded`` has jaxlib's executable as ``raw``; ``seconds`` is what compiling it took.
    """
    if seconds < state.persistent_cache_min_compile_time_secs:
        return
    least, limit = state.persistent_cache_min_entry_size_bytes, _limit()

    def job() -> None:
        try:
            raw = loaded.raw
            blob = raw.client.serialize_executable(raw)
        except Exception:  # a plug-in that cannot
            return
        if len(blob) >= least:
            version = build()[0]
            entry = Entry(name, platform, version, tuple(sorted(needs)), blob)
            _write(place, store.EXECUTABLE, files.pack(entry, place.key), limit)

    _later(job)


def keep_link(place: Place, digest: bytes) -> None:
    """Write which module's digest a program's key leads to, when there is time."""
    limit = _limit()
    _later(lambda: _write(place, store.LINK, files.pack_link(digest, place.key), limit))


def _limit() -> int:
    chosen = state.compilation_cache_max_size
    return store.DEFAULT_LIMIT if chosen < 0 else chosen


def _later(job: writer.Job) -> None:
    def guarded() -> None:
        try:
            job()
        except Exception as e:
            warn_once.warn("Compiled programs cannot be kept (%s: %s).", type(e).__name__, e)

    if not _stopped:
        writer.later(guarded)


def _write(place: Place, suffix: str, data: bytes, limit: int) -> None:
    global _stopped
    where = place.path
    if _stopped or len(data) > limit:
        return
    try:
        written = store.write(where, place.key, suffix, data)
        # A large cache takes long to look through. Drawing lots, all processes together do it once
        # for each 64th part of the limit that they write, without knowing of each other.
        if written and written * _LOOKS > limit * _drawn():
            store.evict(where, limit)
    except Unsafe as e:
        _stopped = True
        warn_once.warn("The cache of compiled programs is not used: %s.", e)
    except FileNotFoundError:
        pass  # the folder vanished meanwhile; it is made again for the next file
    except OSError as e:
        _stopped = True
        if e.errno not in _NO_PLACE:
            warn_once.warn("Compiled programs cannot be kept in %s (%s).", where, e)


_LOOKS = 64


def _drawn() -> float:
    """A random number below 1, not from the generator that the user may have seeded."""
    return int.from_bytes(os.urandom(4), "little") / 2**32


# Homes that cannot be written are common, and no reason to complain.
_NO_PLACE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
