"""jaxlib's profiler. Its sessions and its server are the process's; nothing of it is touched before
the user asks."""

from __future__ import annotations

import errno
import gzip
import socket
from typing import Any

# The second needs the first to be loaded.
from jaxlib import _profile_data, _profiler

from .devices import client_of

ProfileOptions = _profiler.ProfileOptions
Annotation = _profiler.TraceMe
RawProfileData = _profile_data.ProfileData
ProfilePlane = _profile_data.ProfilePlane
ProfileLine = _profile_data.ProfileLine
ProfileEvent = _profile_data.ProfileEvent


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
