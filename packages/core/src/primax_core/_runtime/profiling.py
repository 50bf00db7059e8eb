"""jaxlib's profiler. Its sessions and its server are the process's; nothing of it is touched before
the user asks."""

from __future__ import annotations

import errno
import gzip
import socket
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jaxlib import _profile_data, _profiler

from .devices import client_of

RawProfileData: Any = _profile_data.ProfileData

if TYPE_CHECKING:  # jaxlib tells type checkers nothing

    class ProfileOptions:
        """What a profile holds: levels of tracing from 0 (none) to 3, and more."""

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
        """Something that took time, with what else is known of it."""

        name: str
        start_ns: float
        end_ns: float
        duration_ns: float
        stats: Iterator[tuple[str | None, Any]]

    class ProfileLine:
        """What happened one after the other: in a thread, in a stream."""

        name: str
        events: Iterator[ProfileEvent]

    class ProfilePlane:
        """What happened in one place: on the host, on a device."""

        name: str
        lines: Iterator[ProfileLine]
        stats: Iterator[tuple[str | None, Any]]

    class Annotation:
        """jaxlib's context manager that names a stretch of time."""

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
    """jaxlib's types of iterators. It makes each when it is first used, and again when it was
    dropped meanwhile. That is worth a warning to Python; where warnings are errors, it ends the
    process. So they are made here and kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raw = RawProfileData.from_serialized_xspace(
            RawProfileData.text_proto_to_serialized_xspace(_ONE_OF_EACH)
        )
        (plane,) = raw.planes
        (line,) = plane.lines
        (event,) = line.events
        made = (raw.planes, plane.lines, plane.stats, line.events, event.stats)
        return [type(iterator) for iterator in made]


_KEPT = _iterator_types()


def start_session(options: Any) -> Any:
    """jaxlib's session, running."""
    return _profiler.ProfilerSession(options)


def serve(port: int) -> Any:
    """jaxlib's profiler server. It reports no failure itself, so the port is tried first.

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
    """Have the profiler server of another process take part in profiles of this one."""
    return _profiler.register_subprocess(pid, port)


def heap_profile(backend: str | None) -> bytes:
    """What lies in the memory of a platform's devices, as a compressed pprof profile."""
    return gzip.compress(client_of(backend).heap_profile())
