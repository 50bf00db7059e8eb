"""Checks in another process that a module of unknown origin can be read.

MLIR's reader of bytecode trusts its input. About one in a hundred modules with a damaged byte ends
the process that reads them (an assertion, a segmentation fault, exhausted memory), on every version
of jaxlib. Therefore a module that this process did not write is first read by `module_reader` in a
separate process. The first module takes 0.2 s; later ones take the time of reading. Readable
modules, and those written by this process, are recorded: in the process, and for other processes in
the folder of the disk cache, by the digest of their bytes and the build of jaxlib.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._base import caches
from .._base.config import state
from .._base.digest import digest
from .._base.errors import InvalidArtifactError
from .._base.locks import new_lock
from .._runtime.disk import executables as disk
from .._runtime.jaxlib_versions import build
from . import module_reader

# Time limits of the other process for its start and for a module: some bytes are read for ever.
STARTING = 60.0
READING = 4.0, 1e-6  # seconds, and seconds for each byte

_readable: dict[bytes, None] = caches.bounded_cache()
_trusted: dict[bytes, None] = caches.bounded_cache()


def trust(data: bytes) -> None:
    """Record that a module's bytes come from this process or a source that the user trusts."""
    _trusted[_key(data)] = None


def is_trusted(data: bytes) -> bool:
    """Return True if a module's bytes were recorded by :func:`trust`."""
    return _key(data) in _trusted


def remember(data: bytes) -> None:
    """Record that a module's bytes can be read."""
    key = _key(data)
    if key not in _readable:
        _readable[key] = None
        location = _location(key)
        if location is not None:
            disk.keep_link(location, key)


def check(data: bytes) -> None:
    """Raise an error if a module's bytes cannot be read; the test runs in another process.

    Raises:
      InvalidArtifactError: with the reason.
      RuntimeError: if no other process can be started.
    """
    key = _key(data)
    if key in _readable:
        return
    location = _location(key)
    if location is None or disk.link(location) != key:
        problem = _reader.ask(data)
        if problem:
            raise InvalidArtifactError(f"the artifact's module cannot be read: {problem}")
    remember(data)


def _key(data: bytes) -> bytes:
    return digest(repr(("primax readable module 1", build(), digest(data))).encode())


def _location(key: bytes) -> Any:
    if not state.enable_compilation_cache:
        return None
    where = disk.path()
    return None if where is None else disk.FileLocation(where, key)


class _Reader:
    """The other process, started on demand."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0

    def ask(self, data: bytes) -> str:
        """The error in a module's bytes, or ``""``."""
        with self.lock:
            for _ in range(3):
                process = self._running()
                with _limited(process, READING[0] + READING[1] * len(data)):
                    answer = self._exchange(process, data)
                if answer is not None:
                    return answer
                code = self._ended(process)
                if code != 0:  # not an exit because of idleness
                    return f"reading it crashed the reader process, or did not end ({code})"
        return "the reader process exits immediately"

    def _running(self) -> subprocess.Popen[bytes]:
        process = self.process
        if process is not None:
            if self.owner == os.getpid() and process.poll() is None:
                return process
            _close(process)
        import jaxlib
        import ml_dtypes
        import numpy

        homes = [os.path.dirname(os.path.dirname(m.__file__)) for m in (jaxlib, numpy, ml_dtypes)]
        command = [sys.executable or "python", "-I", "-S", module_reader.__file__]
        try:
            process = subprocess.Popen(
                [*command, *dict.fromkeys(homes)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as e:
            raise RuntimeError(
                f"an artifact of unknown origin is first read in another process, and {command[0]} "
                f"cannot be started ({e}). If you trust the source of the artifact, use "
                "export.deserialize(blob, trusted=True)."
            ) from e
        self.process, self.owner = process, os.getpid()
        assert process.stdout is not None
        with _limited(process, STARTING):
            process.stdout.read(1)  # it is ready
        return process

    def _exchange(self, process: subprocess.Popen[bytes], data: bytes) -> str | None:
        """The answer; ``None`` if the process exited."""
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(struct.pack("<Q", len(data)) + data)
            process.stdin.flush()
            head = process.stdout.read(5)
            if len(head) < 5:
                return None
            size = struct.unpack("<I", head[1:])[0]
            text = process.stdout.read(size).decode("utf-8", "replace")
            return "" if head[:1] == b"y" else text or "it is malformed"
        except OSError:
            return None

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        self.process = None
        _close(process)
        try:
            return process.wait(STARTING)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def stop(self) -> None:
        """Stop the other process, if it belongs to this process and not to a forked parent."""
        process = self.process
        if process is not None and self.owner == os.getpid():
            process.kill()
            self._ended(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close this side of the pipes."""
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass


@contextmanager
def _limited(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Context manager that kills the process if it takes longer."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


_reader = _Reader()
atexit.register(_reader.stop)
