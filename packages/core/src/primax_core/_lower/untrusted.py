"""Whether a module of unknown origin can be read: tried first in another process.

MLIR's reader of bytecode trusts its input. About one in a hundred modules with a damaged byte ends
the process that reads them (an assertion, a segmentation fault, all memory taken), on every version
of jaxlib. So a module that this process did not write is first read by `module_reader` in a process
of its own. That takes 0.2 s for the first one and the time of reading for those that follow soon.
What was found to be readable, or was written here, is remembered: in the process, and for others in
the folder of the cache of compiled programs, by the digest of its bytes and the build of jaxlib.
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

# How long the other process may take to start, and to read a module: some bytes it reads for ever.
STARTING = 60.0
READING = 4.0, 1e-6  # seconds, and seconds for each byte

_readable: dict[bytes, None] = caches.bounded_cache()
_trusted: dict[bytes, None] = caches.bounded_cache()


def trust(data: bytes) -> None:
    """Note that a module's bytes come from this process or somebody whom the user trusts."""
    _trusted[_key(data)] = None


def is_trusted(data: bytes) -> bool:
    """Whether a module's bytes were noted by :func:`trust`."""
    return _key(data) in _trusted


def remember(data: bytes) -> None:
    """Note that a module's bytes can be read."""
    key = _key(data)
    if key not in _readable:
        _readable[key] = None
        place = _place(key)
        if place is not None:
            disk.keep_link(place, key)


def check(data: bytes) -> None:
    """Refuse a module's bytes if reading them fails, without doing so in this process.

    Raises:
      InvalidArtifactError: saying why.
      RuntimeError: if no other process can be started.
    """
    key = _key(data)
    if key in _readable:
        return
    place = _place(key)
    if place is None or disk.link(place) != key:
        problem = _reader.ask(data)
        if problem:
            raise InvalidArtifactError(f"the artifact's module cannot be read: {problem}")
    remember(data)


def _key(data: bytes) -> bytes:
    return digest(repr(("primax readable module 1", build(), digest(data))).encode())


def _place(key: bytes) -> Any:
    if not state.enable_compilation_cache:
        return None
    where = disk.path()
    return None if where is None else disk.FileLocation(where, key)


class _Reader:
    """The other process, which is started when it is needed."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0

    def ask(self, data: bytes) -> str:
        """What is wrong with a module's bytes, or ``""``."""
        with self.lock:
            for _ in range(3):
                process = self._running()
                with _limited(process, READING[0] + READING[1] * len(data)):
                    answer = self._exchange(process, data)
                if answer is not None:
                    return answer
                code = self._ended(process)
                if code != 0:  # it did not end because it was idle
                    return f"reading it ended the process that tried, or went on for ever ({code})"
        return "the process that reads modules ends at once"

    def _running(self) -> subprocess.Popen[bytes]:
        process = self.process
        if process is not None and self.owner == os.getpid() and process.poll() is None:
            return process
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
                f"cannot be started ({e}). If you know who made the artifact, use "
                "export.deserialize(blob, trusted=True)."
            ) from e
        self.process, self.owner = process, os.getpid()
        assert process.stdout is not None
        with _limited(process, STARTING):
            process.stdout.read(1)  # it is ready
        return process

    def _exchange(self, process: subprocess.Popen[bytes], data: bytes) -> str | None:
        """The answer; ``None`` if the process ended."""
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
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass
        try:
            return process.wait(STARTING)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def stop(self) -> None:
        """End the other process, which is this one's and not that of a parent it forked from."""
        process = self.process
        if process is not None and self.owner == os.getpid():
            process.kill()
            self._ended(process)


@contextmanager
def _limited(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Kills the process if it takes longer."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


_reader = _Reader()
atexit.register(_reader.stop)
