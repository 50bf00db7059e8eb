"""Executables of jaxlib in the cache on disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

from ..._base.config import state
from .. import custom_calls
from ..jaxlib_versions import _jax, build
from . import files, folder, keys, store, warn_once, writer
from .files import Damaged, Entry
from .folder import Unsafe, Unusable


class FileLocation:
    """Location of a file of the cache: a folder, and the key in it."""

    __slots__ = ("path", "key")

    def __init__(self, path: str, key: bytes):
        self.path = path
        self.key = key


def is_on(devs: tuple) -> bool:
    """Return True if executables for these devices are cached, according to the options."""
    if not state.enable_compilation_cache:
        return False
    # A multi-process executable is compiled by all of the processes together or by none.
    client = devs[0].client
    return all(d.process_index == client.process_index() for d in client.devices())


def path() -> str | None:
    """The folder of the cache, or ``None`` if no usable folder exists."""
    try:
        return folder.location()
    except Unsafe as e:
        warn_once.warn("The cache of executables is not used: %s.", e)
    except OSError:  # a relative folder, and the current one is gone
        pass
    return None


def executable_location(digest: bytes, devs: tuple, options: Any) -> FileLocation | None:
    """Location of the executable of a module, from the digest of the module."""
    where = path()
    if where is None:
        return None
    try:
        machine = keys.machine(devs)
    except Exception:  # a plug-in that cannot describe its devices
        return None
    return FileLocation(where, keys.executable_key(digest, options.SerializeAsString(), machine))


def link_location(program: bytes, devs: tuple) -> FileLocation | None:
    """Location of the link from the key of a jaxpr to a module."""
    where = path()
    if where is None:
        return None
    try:
        # Rules may depend on properties of the devices.
        return FileLocation(where, keys.link_key(program, keys.machine(devs)))
    except Exception:
        return None


def deserialized(blob: bytes, devs: tuple, options: Any, callbacks: Sequence) -> Any:
    """jaxlib's executable from its bytes, and the functions that it calls, in their order."""
    load = devs[0].client.deserialize_executable
    if not callbacks:
        return load(blob, devs, options)
    return load(blob, _jax.DeviceList(devs), options, callbacks)


def fetch(
    location: FileLocation, devs: tuple, options: Any, callbacks: Sequence = ()
) -> Any | None:
    """jaxlib's executable, loaded from the disk; ``None`` if it is missing or unusable.

    ``callbacks`` are the Python functions that it calls. Their number and types are those of the
    module, which determines the location.
    """
    data = _read(location.path, location.key, store.EXECUTABLE)
    if data is None:
        return None
    try:
        entry = files.unpack(data, location.key)
        try:  # before the executable is loaded: XLA looks up native functions by name
            custom_calls.ensure(entry.needs)
        except Exception:
            return None  # the compilation will raise it
        return deserialized(entry.blob, devs, options, callbacks)
    except Exception as e:
        _damaged(location.path, location.key, store.EXECUTABLE, e)
        return None


def stored(location: FileLocation) -> bytes | None:
    """The serialized executable at a location; ``None`` if it is missing."""
    data = _read(location.path, location.key, store.EXECUTABLE)
    try:
        return None if data is None else files.unpack(data, location.key).blob
    except Exception:
        return None


def link(location: FileLocation) -> bytes | None:
    """The digest of the module that a link refers to; ``None`` if it is missing."""
    data = _read(location.path, location.key, store.LINK)
    if data is None:
        return None
    try:
        return files.unpack_link(data, location.key)
    except Damaged as e:
        _damaged(location.path, location.key, store.LINK, e)
        return None


def _read(where: str, key: bytes, suffix: str) -> bytes | None:
    try:
        return store.read(where, key, suffix)
    except Unsafe as e:
        warn_once.warn("The cache of executables is not used: %s.", e)
    except (Unusable, MemoryError) as e:
        _damaged(where, key, suffix, e)
    except (OSError, ValueError):  # an invalid folder name
        pass
    return None


def _damaged(where: str, key: bytes, suffix: str, error: Exception) -> None:
    warn_once.warn(
        "A file of the cache of executables, %s%s in %s, is damaged and was removed (%s).",
        key.hex(), suffix, where, error,
    )  # fmt: skip
    try:
        store.remove(where, key, suffix)
    except OSError:
        pass


# Writing

# True after a file could not be written: later files are not tried.
_stopped = False


def keep(
    location: FileLocation,
    loaded: Any,
    name: str,
    platform: str,
    needs: frozenset[str],
    seconds: float,
    check: Any = None,
    now: bool = False,
) -> None:
    """Write an executable in the background, if ``check`` returns True for its bytes.

    ``loaded.raw`` is jaxlib's executable; ``seconds`` is its compilation time. If ``now`` is true,
    it is serialized before the call returns.
    """
    if seconds < state.persistent_cache_min_compile_time_secs:
        return
    least, limit = state.persistent_cache_min_entry_size_bytes, _limit()
    if _stopped or limit == 0:
        return
    first = _serialized(loaded) if now else b""

    def job() -> None:
        blob = first or _serialized(loaded)
        if blob and len(blob) >= least and (check is None or check(blob)):
            version = build()[0]
            entry = Entry(name, platform, version, tuple(sorted(needs)), blob)
            _write(location, store.EXECUTABLE, files.pack(entry, location.key), limit)

    _later(job)


def _serialized(loaded: Any) -> bytes:
    try:
        return loaded.raw.client.serialize_executable(loaded.raw)
    except Exception:  # a plug-in without serialization
        return b""


def keep_link(location: FileLocation, digest: bytes) -> None:
    """Write a link from the key of a jaxpr to the digest of its module, in the background."""
    limit = _limit()
    _later(lambda: _write(location, store.LINK, files.pack_link(digest, location.key), limit))


def _limit() -> int:
    chosen = state.compilation_cache_max_size
    return store.DEFAULT_LIMIT if chosen < 0 else chosen


def _later(job: writer.Job) -> None:
    def guarded() -> None:
        try:
            job()
        except Exception as e:
            warn_once.warn("Executables cannot be cached (%s: %s).", type(e).__name__, e)

    if not _stopped:
        writer.later(guarded)


def _write(location: FileLocation, suffix: str, data: bytes, limit: int) -> None:
    global _stopped
    where = location.path
    if _stopped or len(data) > limit:
        return
    try:
        written = store.write(where, location.key, suffix, data)
        # Scanning a large cache is slow. By random choice, all processes together scan it once for
        # each 64th part of the limit that they write, without communication.
        if written and written * _LOOKS > limit * _drawn():
            store.evict(where, limit)
    except Unsafe as e:
        _stopped = True
        warn_once.warn("The cache of executables is not used: %s.", e)
    except FileNotFoundError:
        pass  # the folder was removed; the next file creates it again
    except OSError as e:
        _stopped = True
        if e.errno not in _NO_PLACE:
            warn_once.warn("Executables cannot be cached in %s (%s).", where, e)


_LOOKS = 64


def _drawn() -> float:
    """A random number below 1, independent of seeded random generators."""
    return int.from_bytes(os.urandom(4), "little") / 2**32


# Unwritable home folders are common: no warning.
_NO_PLACE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
