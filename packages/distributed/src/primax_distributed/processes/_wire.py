"""Messages between the coordinator and the processes: lines of JSON over TCP."""

from __future__ import annotations

import json
import socket
from typing import Any, Final

GREETING: Final = {"primax": 1}
"""First line of a coordinator; the number is the version of the messages."""

LINE_LIMIT: Final = 1 << 16

Message = dict[str, Any]


def encoded(message: Message) -> bytes:
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Collects the bytes of a connection into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> list[Message]:
        """The messages that are complete with these bytes.

        Raises:
          ValueError: they are no messages.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_LIMIT:
            raise ValueError("a line is too long")
        messages = [json.loads(line) for line in lines]
        if any(type(m) is not dict for m in messages):
            raise ValueError("a line is not a message")
        return messages


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``host:port`` or ``[ipv6]:port``.

    Raises:
      ValueError: the text is no address.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536 or not host:
        raise ValueError(
            f"{address!r} is no address of a coordinator: write host:port, such as 10.0.0.1:8476 "
            "or [fe80::1]:8476"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def joined_address(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def free_port(host: str) -> int:
    """A port on which nothing listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as s:
        s.bind((host, 0))
        port: int = s.getsockname()[1]
        return port
