"""Contents of a profile, and its files."""

from __future__ import annotations

import gzip
import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

from .native import ProfilePlane, RawProfileData

_logger: Final = logging.getLogger(__name__.partition(".")[0])


class ProfileData:
    """A finished profile: planes (the host, each device) of lines (threads, streams) of events.

    >>> text = 'planes { name: "host" lines { name: "thread" } }'
    >>> data = ProfileData.from_serialized_xspace(ProfileData.text_proto_to_serialized_xspace(text))
    >>> [plane.name for plane in data.planes]
    ['host']
    """

    __slots__ = ("_raw", "_serialized")

    def __init__(self, raw: Any, serialized: bytes):
        self._raw = raw
        self._serialized = serialized

    @staticmethod
    def from_serialized_xspace(serialized: bytes) -> ProfileData:
        """A profile from the bytes of an ``.xplane.pb`` file."""
        if not isinstance(serialized, (bytes, bytearray, memoryview)):
            raise TypeError(f"expected the bytes of a profile, got {type(serialized).__name__}")
        serialized = bytes(serialized)
        try:
            return ProfileData(RawProfileData.from_serialized_xspace(serialized), serialized)
        except Exception as e:
            raise ValueError(f"these {len(serialized)} bytes are not a profile: {e}") from e

    @staticmethod
    def from_file(proto_file_path: str | os.PathLike[str]) -> ProfileData:
        """A profile from an ``.xplane.pb`` file."""
        with open(proto_file_path, "rb") as file:
            return ProfileData.from_serialized_xspace(file.read())

    @staticmethod
    def from_text_proto(text_proto: str) -> ProfileData:
        """A profile from the text form of its protocol buffer."""
        serialized = ProfileData.text_proto_to_serialized_xspace(text_proto)
        return ProfileData.from_serialized_xspace(serialized)

    @staticmethod
    def text_proto_to_serialized_xspace(text_proto: str) -> bytes:
        """The bytes of the text form of a profile."""
        serialized: bytes = RawProfileData.text_proto_to_serialized_xspace(text_proto)
        return serialized

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        """The planes."""
        planes: Iterator[ProfilePlane] = self._raw.planes
        return planes

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """The plane of a name, such as ``/host:CPU``; ``None`` if there is none."""
        return self._raw.find_plane_with_name(name)

    def __repr__(self) -> str:
        return f"ProfileData({', '.join(p.name for p in self.planes)})"


# Files


def checked_folder(log_dir: str | os.PathLike[str]) -> str:
    """A writable folder, created if it does not exist.

    Raises:
      OSError: if it cannot be created or written to.
    """
    path = os.fspath(log_dir)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        raise type(e)(e.errno, f"profiles cannot be written to {path}: {e.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(13, f"profiles cannot be written to {path}: permission denied")
    return path


def write_profile(data: ProfileData, log_dir: str, session_id: str | None, perfetto: bool) -> str:
    """Write a profile in the folder layout of TensorBoard and XProf; return the trace's path."""
    run = session_id or time.strftime("%Y_%m_%d_%H_%M_%S")
    folder = os.path.join(log_dir, "plugins", "profile", run)
    os.makedirs(folder, exist_ok=True)
    host = socket.gethostname() or "host"
    with open(os.path.join(folder, f"{host}.xplane.pb"), "wb") as file:
        file.write(data._serialized)
    trace = gzip.compress(json.dumps(chrome_trace(data)).encode(), 5)
    path = os.path.join(folder, f"{host}.trace.json.gz")
    paths = [path, os.path.join(folder, "perfetto_trace.json.gz")] if perfetto else [path]
    for path in paths:
        with open(path, "wb") as file:
            file.write(trace)
    return path


_MAX_EVENTS = 1_000_000


def chrome_trace(data: ProfileData) -> dict[str, Any]:
    """A profile in the trace event format, which Perfetto and Chrome read."""
    events: list[dict[str, Any]] = []
    for pid, plane in enumerate(data.planes, 1):
        lines = list(plane.lines)
        if not lines:
            continue
        events.append(_named("process_name", plane.name, pid))
        for tid, line in enumerate(lines, 1):
            events.append(_named("thread_name", line.name, pid, tid))
            for e in line.events:
                event = {
                    "ph": "X", "pid": pid, "tid": tid, "name": e.name, "ts": e.start_ns / 1e3,
                    "dur": e.duration_ns / 1e3,
                }  # fmt: skip
                if e.name[:1] != "$":  # calls of Python functions have no further data
                    args = {k: str(v) for k, v in e.stats if k is not None and k[:1] != "_"}
                    if args:
                        event["args"] = args
                events.append(event)
                if len(events) >= _MAX_EVENTS:
                    _logger.warning(
                        "The trace was cut at %d events; the profile is complete.", len(events)
                    )
                    return _trace(events)
    return _trace(events)


def _trace(events: list[dict[str, Any]]) -> dict[str, Any]:
    return {"displayTimeUnit": "ns", "traceEvents": events}


def _named(what: str, name: str, pid: int, tid: int = 0) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name or "line"}}
