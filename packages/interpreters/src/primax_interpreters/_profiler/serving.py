"""The profiler's server, profiles of other processes, and memory profiles."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

from primax_core.extend.runtime import api_boundary, clients

from .native import heap_profile, register, serve

_server: Any = None


@api_boundary
def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server from which TensorBoard and XProf record profiles of this process.

    Args:
      port: the port of the server.
      requires_backend: start the devices first, so that the profile includes them.

    Returns:
      The server, which runs until :func:`stop_server`.

    Raises:
      ValueError: if a server is running, or ``port`` is not a port.
      OSError: if the port cannot be used.
    """
    global _server
    if _server is not None:
        raise ValueError("Only one profiler server can be active at a time: stop_server() first.")
    port = _port(port)
    if requires_backend:
        clients()
    _server = serve(port)
    return _server


@api_boundary
def stop_server() -> None:
    """Stop the profiler's server.

    Raises:
      ValueError: if no server is running.
    """
    global _server
    if _server is None:
        raise ValueError("No active profiler server.")
    _server = None  # it stops when its last reference is dropped


@api_boundary
def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Include another process with a profiler server in the profiles of this one.

    Args:
      pid: the id of the other process.
      port: the port of its server.

    Returns:
      A function that removes it.

    Raises:
      ValueError: if ``pid`` is this process or invalid, or ``port`` is not a port.
      RuntimeError: if its server does not answer.
    """
    pid = operator.index(pid)
    if pid <= 0 or pid == os.getpid():
        raise ValueError(f"register_subprocess needs another process, got pid {pid}")
    unregister: Callable[[], None] = register(pid, _port(port))
    return unregister


def _port(port: Any) -> int:
    port = operator.index(port)
    if not 0 <= port < 65536:
        raise ValueError(f"a port is a number from 0 to 65535, got {port}")
    return port


@api_boundary
def device_memory_profile(backend: str | None = None) -> bytes:
    """Contents of the devices' memory, by the Python code that allocated it.

    Args:
      backend: the platform; by default that of the default device.

    Returns:
      A pprof profile, compressed: write it to a file for the ``pprof`` tool.

    >>> device_memory_profile()[:2]  # the magic number of gzip
    b'\\x1f\\x8b'
    """
    return heap_profile(backend)


@api_boundary
def save_device_memory_profile(
    filename: str | os.PathLike[str], backend: str | None = None
) -> None:
    """Write :func:`device_memory_profile` to a file."""
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)
