"""End of the collectives of this process, after another one died or froze.

jaxlib's collectives on CPUs (gloo) notice a closed connection in milliseconds, but wait without end
for a frozen process, and for 30 to 150 seconds for one that died while connections were made.
They make their connections through keys of the coordination service and through TCP sockets, so
each of these waits can be ended from outside: missing keys get a value that is no
address, listening sockets get the connection that they wait for, and connections are shut down.
Then the operations that waited raise an error, and their threads end.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from .jaxlib_errors import JaxRuntimeError
from .processes import Member

_GLOO: Final = "cpu:gloo"
_NO_ADDRESS: Final = struct.pack("<Q", 1) + b"x" + struct.pack("<Q", 0)
_TOPOLOGIES: Final = ("cpu", "cuda", "gpu", "rocm", "tpu")


class _Endpoint(NamedTuple):
    """The listening socket that gloo publishes for one device of a group."""

    group: str
    position: int
    host: str
    port: int
    connections: tuple[bytes, ...]


def note_connections(member: Member) -> None:
    """Remember the ports of the connections that exist, for when the service does not answer."""
    member._ports = {e.port for e in _endpoints(member._raw)}


def abort_collectives(member: Member, *, service_answers: bool = True) -> None:
    """Make all collectives of this process fail, those that run and those that connect.

    Call it once the generation has ended: nothing of it can be computed afterwards.

    Args:
      member: this process in its generation, as for :func:`join`.
      service_answers: false if the coordination service is dead or frozen. Only the connections
        that :func:`connect_devices` made can be ended then.

    Returns:
      ``None``.

    Threads that wait for a collective with a dead process go on with an error. Without the call
    they would wait for XLA's time limit.
    """
    raw = member._raw
    if raw is None:
        return
    listening = set(_shut_down(member._ports))
    if not service_answers:
        return
    _end_topologies(raw, member.num_processes)
    endpoints = list(_endpoints(raw))
    listening |= set(_shut_down({e.port for e in endpoints}))
    for endpoint in endpoints:
        if endpoint.port in listening:
            _end_waiting(raw, endpoint)


def _end_topologies(raw: Any, num_processes: int) -> None:
    """End the exchange of devices, by which clients start."""
    for platform in _TOPOLOGIES:
        # First the key that rank 0 would write: it fails then, and so do those that read it.
        _store(raw, f"{platform}:global_topology/{platform}", b"\xff")
        for rank in range(num_processes):
            _store(raw, f"{platform}:local_topology/{platform}/{rank}", b"\xff")


def _store(raw: Any, key: str, value: bytes) -> None:
    try:
        raw.key_value_set_bytes(key, value, False)
    except JaxRuntimeError:  # it has a value
        pass


def _endpoints(raw: Any) -> Iterator[_Endpoint]:
    try:
        published = raw.key_value_dir_get_bytes(_GLOO)
    except JaxRuntimeError:
        return
    for key, value in published:
        endpoint = _read(key, value)
        if endpoint is not None:
            yield endpoint


def _read(key: str, value: bytes) -> _Endpoint | None:
    """Read ``(host name, address, numbers of connections)`` as gloo's key-value store writes it."""
    group, _, position = key.rpartition("/")
    try:
        (length,) = struct.unpack_from("<Q", value)
        (size,) = struct.unpack_from("<Q", value, 8 + length)
        address = value[16 + length : 16 + length + size]
        numbers = value[16 + length + size :]
        family, port = struct.unpack_from("<H", address)[0], struct.unpack_from(">H", address, 2)[0]
        if family == socket.AF_INET:
            host = socket.inet_ntop(socket.AF_INET, address[4:8])
        else:
            host = socket.inet_ntop(socket.AF_INET6, address[8:24])
        connections = tuple(numbers[i : i + 8] for i in range(0, len(numbers), 8))
        return _Endpoint(group, int(position), host, port, connections)
    except (struct.error, ValueError, OSError):
        return None


def _shut_down(ports: set[int]) -> Iterator[int]:
    """Shut down the connections to or from these ports; yield the ports that listen here."""
    try:
        descriptors = os.listdir("/proc/self/fd")
    except OSError:  # not Linux: a process that waits is killed after the grace time
        return
    for descriptor in descriptors:
        connection = _socket_of(int(descriptor))
        if connection is None:
            continue
        with connection:
            try:
                own = connection.getsockname()[1]
                if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    if own in ports:
                        yield own
                elif own in ports or connection.getpeername()[1] in ports:
                    connection.shutdown(socket.SHUT_RDWR)
            except (OSError, IndexError, TypeError):
                continue


def _socket_of(descriptor: int) -> socket.socket | None:
    """A socket on a copy of a descriptor, or ``None`` if that is no socket."""
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        copy = os.dup(descriptor)
    except OSError:  # closed in the meantime
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return None


def _end_waiting(raw: Any, endpoint: _Endpoint) -> None:
    """End the connecting of a device: give it the keys and the connections that it waits for."""
    for position in range(len(endpoint.connections)):
        if position != endpoint.position:
            _store(raw, f"{endpoint.group}/{position}", _NO_ADDRESS)
    for number in endpoint.connections:
        try:
            with socket.create_connection((endpoint.host, endpoint.port), timeout=1) as connection:
                connection.sendall(number)
        except OSError:
            return
