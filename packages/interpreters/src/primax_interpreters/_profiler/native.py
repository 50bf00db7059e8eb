"""jaxlib's profiler. Its sessions and its server are process-wide, and started only on request."""

from __future__ import annotations

import errno
import gzip
import socket
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jaxlib import _profile_data, _profiler

from primax_core.extend.runtime import client_of

RawProfileData: Any = _profile_data.ProfileData

if TYPE_CHECKING:  # jaxlib has no type stubs

    class ProfileOptions:
        """Options of a profile: levels of tracing from 0 (none) to 3, and others."""

        host_tracer_level: int
        python_tracer_level: int
        enable_hlo_proto: bool
        include_dataset_ops: bool
        duration_ms: int
        start_timestamp_ns: int
        repository_path: str
        session_id: str
        raise_error_on_start_failure: bool
        advanced_configuration: dict[str, Any]

    class ProfileEvent:
        """An event with a duration and additional data."""

        name: str
        start_ns: float
        end_ns: float
        duration_ns: float
        stats: Iterator[tuple[str | None, Any]]

    class ProfileLine:
        """Consecutive events of a thread or a stream."""

        name: str
        events: Iterator[ProfileEvent]

    class ProfilePlane:
        """Events of the host or of one device."""

        name: str
        lines: Iterator[ProfileLine]
        stats: Iterator[tuple[str | None, Any]]

    class Annotation:
        """jaxlib's context manager that names a time span."""

        def __init__(self, name: str, **kwargs: Any): ...
        def __enter__(self) -> Any: ...
        def __exit__(self, *exc: object) -> None: ...
        def set_metadata(self, **kwargs: Any) -> None: ...
        @staticmethod
        def is_enabled() -> bool: ...

else:
    ProfileOptions = _profiler.ProfileOptions
    Annotation = _profiler.TraceMe
    ProfilePlane = _profile_data.ProfilePlane
    ProfileLine = _profile_data.ProfileLine
    ProfileEvent = _profile_data.ProfileEvent


_ONE_OF_EACH = """planes {
  lines { events { metadata_id: 1 stats { metadata_id: 1 int64_value: 1 } } }
  stats { metadata_id: 1 int64_value: 1 }
  event_metadata { key: 1 value { name: "event" } }
  stat_metadata { key: 1 value { name: "stat" } }
}"""


def _iterator_types() -> list[type]:
    """jaxlib's iterator types. jaxlib creates each one on first use, and again after it was freed.
    Python then issues a warning, which ends the process where warnings are errors. So they are
    created here and stored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raw = RawProfileData.from_serialized_xspace(
            RawProfileData.text_proto_to_serialized_xspace(_ONE_OF_EACH)
        )
        (plane,) = raw.planes
        (line,) = plane.lines
        (event,) = line.events
        iterators = (raw.planes, plane.lines, plane.stats, line.events, event.stats)
        return [type(iterator) for iterator in iterators]


_ITERATOR_TYPES = _iterator_types()


def start_session(options: Any) -> Any:
    """A running session of jaxlib's profiler."""
    return _profiler.ProfilerSession(options)


def serve(port: int) -> Any:
    """Start jaxlib's profiler server. It does not report failures, so the port is tried first.

    Raises:
      OSError: if the port cannot be used.
    """
    family = socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", port))
    except OSError as e:
        if e.errno != errno.EAFNOSUPPORT:
            raise OSError(
                e.errno, f"the profiler server cannot use port {port}: {e.strerror}"
            ) from None
    return _profiler.start_server(port)


def register(pid: int, port: int) -> Any:
    """Include this process in the profiles of another process's profiler server."""
    return _profiler.register_subprocess(pid, port)


def heap_profile(backend: str | None) -> bytes:
    """Memory contents of a platform's devices, as a compressed pprof profile."""
    return gzip.compress(client_of(backend).heap_profile())
