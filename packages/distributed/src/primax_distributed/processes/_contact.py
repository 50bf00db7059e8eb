"""The connection of a process to the coordinator."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ._errors import JoinError, ProcessFailure, ProgramMismatchError, failure_text, mismatch_text
from ._wire import GREETING, Lines, Message, encoded, split_address

_BEAT: Final = 1.0
_COMPARE: Final = 0.05
"""Seconds after which the begun programs are sent, if programs are compared."""
_BATCH: Final = 256
_log: Final = logging.getLogger("primax_distributed")


class Contact:
    """A process at its coordinator.

    It connects, retrying until ``patience`` seconds have passed. Another thread then says every
    second that this process lives, and listens.

    Args:
      freeze: seconds of silence of the coordinator after which it counts as dead.
      host_rank: the rank whose process runs the coordinator, or ``None`` for a launcher.
      report: returns ``(programs begun, where the main thread is)`` for the others.
      on_late: called in that thread with ``[[rank, programs begun, where], ...]`` of late ranks.
      compares: whether the programs that the processes begin are compared.

    Attributes:
      begun: lines of the programs that this process has begun; they are sent within 50 ms.
      on_end: called in that thread when the generation has ended.

    Raises:
      JoinError: no coordinator answers.
    """

    def __init__(
        self, address: str, rank: int, num_processes: int, *, patience: float = 300,
        freeze: float = 8, host_rank: int | None = 0,
        report: Callable[[], tuple[int, str]] = lambda: (0, ""),
        on_late: Callable[[list[list[Any]]], None] = lambda late: None, compares: bool = False,
    ):  # fmt: skip
        self.address = address
        self.rank = rank
        self.num_processes = num_processes
        self._patience, self._freeze, self._host_rank = patience, freeze, host_rank
        self._report, self._on_late = report, on_late
        self.compares = compares
        self.difference: str | None = None
        self._ended_since = 0.0
        self.begun: deque[bytes] = deque()
        self.on_end: Callable[[], None] = lambda: None
        self._deadline = time.monotonic() + patience
        self._lines = Lines()
        self._socket = self._connect(*split_address(address))
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._go: tuple[str, int] | None = None
        self._refusal: str | None = None
        self._lost: str | None = None
        self._complete = 0
        self._closing = False
        self.generation: int = 0
        self.dead: dict[int, str] = {}
        self.left: set[int] = set()
        self.coordinator_gone: bool = False
        self.ended: threading.Event = threading.Event()
        self.own_host: str = self._socket.getsockname()[0]
        self._socket.settimeout(_COMPARE if compares else _BEAT / 2)
        # Sending has its own timeout: a part of a line would make the rest unreadable.
        self._sender = self._socket.dup()
        self._sender.settimeout(max(freeze, 1))
        self._thread = threading.Thread(target=self._listen, name="contact", daemon=True)
        self._thread.start()

    def _connect(self, host: str, port: int) -> socket.socket:
        waited, why = False, ""
        while not waited or time.monotonic() < self._deadline:
            try:
                connection = socket.create_connection((host, port), timeout=5)
            except OSError as e:
                why, waited = e.strerror or str(e), True
                time.sleep(0.1)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._check_greeting(connection)
            return connection
        raise JoinError(
            f"no coordinator answers at {self.address} ({why}) within {self._patience:g} s. Rank 0 "
            "starts it: check that it runs, that coordinator_address is its host, and that no "
            "firewall is in between."
        )

    def _check_greeting(self, connection: socket.socket) -> None:
        try:
            messages: list[Message] = []
            while not messages:
                data = connection.recv(1 << 10)
                if not data:
                    raise ValueError("it hung up")
                messages = self._lines.add(data)
            if messages[0] != GREETING:
                raise ValueError("it speaks another version")
        except (OSError, ValueError) as e:
            connection.close()
            raise JoinError(
                f"what listens at {self.address} is no coordinator of this library ({e}): another "
                "program uses the port, or the processes have different versions of "
                "primax-distributed"
            ) from e

    # What this process says

    def _send(self, message: Message) -> None:
        self._send_line(encoded(message))

    def _send_line(self, line: bytes) -> None:
        try:
            with self._lock:
                self._sender.sendall(line)
        except OSError:
            pass  # the listening thread notices it

    def _send_begun(self) -> None:
        begun = self.begun
        while begun:
            self._send_line(b"".join([begun.popleft() for _ in range(min(len(begun), _BATCH))]))

    def join(self) -> tuple[str, int]:
        """Ask for the next generation, and wait until all processes have.

        Returns:
          The address of its coordination service, and its number.

        Raises:
          JoinError: this process is refused, or some others did not come.
        """
        with self._lock:
            self._go = None
            if not self.coordinator_gone:
                self.ended.clear()
        self._send({
            "hello": self.rank, "n": self.num_processes, "pid": os.getpid(),
            "host": socket.gethostname(), "compares": self.compares,
        })  # fmt: skip
        with self._changed:
            # The coordinator tells who is missing; this is for the case that it does not.
            self._changed.wait_for(self._answered, self._patience + self._freeze)
            go = self._admission()
            if go is not None:
                return go
            why = self._refusal or self._lost or f"no answer within {self._patience:g} s"
        raise JoinError(f"rank {self.rank} cannot join the processes at {self.address}: {why}")

    def _admission(self) -> tuple[str, int] | None:
        return self._go

    def _answered(self) -> bool:
        return (self._go or self._refusal or self._lost) is not None

    def done(self) -> bool:
        """Say that this process has finished, and wait for the others.

        Returns:
          True if all have, False if one died before.
        """
        self._send({"done": self.generation})
        with self._changed:
            self._changed.wait_for(
                lambda: self._complete >= self.generation or self.ended.is_set() or self._lost
            )
            return self._complete >= self.generation

    def is_running(self) -> bool:
        """Return True if the generation has begun and not all processes have finished it."""
        return self._go is not None and self._complete < self.generation

    def failure(self) -> ProcessFailure | ProgramMismatchError | None:
        """The error that names the ranks, or ``None`` if the generation goes on."""
        if self.difference is not None:
            return ProgramMismatchError(mismatch_text(self.difference))
        if self.ended.is_set():
            return ProcessFailure(failure_text(self.dead) or self._lost or "", self.dead)
        if self.left:
            gone = dict.fromkeys(self.left, "it has left (by shutdown, or its script has ended)")
            return ProcessFailure(failure_text(gone, "is gone"), gone)
        return None

    def wait_for_news(self, seconds: float) -> None:
        """Wait until a death or a farewell of another process is known."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended.is_set() or self.left, seconds)

    def close(self, failed: str | None = None) -> None:
        """Say goodbye, with the error that ends this process if there is one."""
        self._closing = True
        self._send_begun()
        self._send({"left": self.rank} if failed is None else {"failed": failed[:2000]})
        # At the exit of the interpreter no thread may be inside of jaxlib.
        if self._thread is not threading.current_thread():
            self._thread.join(10)
        self._wait_until_heard()
        self._sender.close()
        self._socket.close()

    def _wait_until_heard(self) -> None:
        """Wait until the coordinator has closed the connection after the last message.

        A connection that is closed while there is something to read discards what was sent.
        """
        try:
            self._sender.shutdown(socket.SHUT_WR)
            self._socket.settimeout(2)
            while self._socket.recv(1 << 16):
                pass
        except OSError:
            pass

    # What it hears

    def _listen(self) -> None:
        beat, heard, why = 0.0, time.monotonic(), "is gone"
        while not self._closing:
            now = time.monotonic()
            if now - beat >= _BEAT:
                begun, where = self._report()
                self._send({"at": begun, "where": where})
                beat = now
                # Again each second, for collectives that have begun since. After a difference of
                # programs not at once: a collective that could still end, and whose connection is
                # closed at that moment, may wait without end.
                if self.ended.is_set() and now - self._ended_since > _BEAT / 2:
                    self.on_end()
            self._send_begun()
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                if now - heard > self._freeze:
                    why = f"has not answered for {now - heard:.0f} s"
                    break
                continue
            except OSError:
                data = b""
            if not data:
                break
            heard = time.monotonic()
            for message in self._lines.add(data):
                self._receive(message)
        if not self._closing:
            self._coordinator_lost(why)

    def _coordinator_lost(self, why: str) -> None:
        with self._changed:
            self.coordinator_gone = True
            if self._host_rank is None:
                self._lost = f"the coordinator at {self.address}, in the launcher, {why}"
            else:
                self.dead[self._host_rank] = f"its coordinator at {self.address} {why}"
                self._lost = self._lost or f"rank {self._host_rank} {why}"
            text = failure_text(self.dead) or self._lost
            self.ended.set()
            self._changed.notify_all()
        _log.error("rank %d: %s", self.rank, text)
        self.on_end()

    def _end(self) -> None:
        if not self.ended.is_set():
            self._ended_since = time.monotonic()
            self.ended.set()

    def _receive(self, message: Message) -> None:
        ended = False
        with self._changed:
            if "go" in message:
                self.generation = int(message["generation"])
                self._go = str(message["go"]), self.generation
                self.dead, self.left, self.difference = {}, set(), None
                self.ended.clear()
            elif "refused" in message:
                self._refusal = str(message["refused"])
            elif "dead" in message:
                if self._go is None or message["generation"] != self.generation:
                    return  # this process has left that generation
                self.dead[int(message["dead"])] = str(message["why"])
                ended = not self.ended.is_set()
                self._end()
            elif "differ" in message:
                if self._go is None or message["generation"] != self.generation:
                    return
                self.difference = str(message["differ"])
                self._end()
            elif "left" in message:
                self.left.add(int(message["left"]))
            elif "complete" in message:
                self._complete = int(message["complete"])
            self._changed.notify_all()
        if "differ" in message:
            _log.error("%s", mismatch_text(str(message["differ"])))
        if ended:
            self.on_end()
        if "late" in message:
            self._on_late(message["late"])
