"""The coordinator: it counts the processes, begins generations, and says which process died.

It listens at the one address that all processes know. Each process keeps a connection to it, over
which it says every second that it lives and how many programs it has begun. A connection that
closes is a death, and one that is silent is a freeze; the others receive the news at once.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from primax_core.extend.processes import Service

from ._agreement import Agreement
from ._wire import GREETING, Lines, Message, encoded, free_port, joined_address

_log: Final = logging.getLogger("primax_distributed")
_TICK: Final = 0.1


class Peer:
    """The connection of one process."""

    def __init__(self, connection: socket.socket):
        self.connection = connection
        self.lines = Lines()
        self.rank: int | None = None
        self.who = ""
        self.pid = 0
        self.heard = time.monotonic()
        self.begun = 0
        self.begun_since = self.heard
        self.where = ""
        self.late_told = -1
        self.state = "new"  # new, waiting, running, done, lost

    def send(self, message: Message) -> None:
        """Send a message; a broken connection is noticed when it is read."""
        try:
            self.connection.sendall(encoded(message))
        except OSError:
            pass


class Coordinator:
    """Generations of ``num_processes`` processes.

    Args:
      bind: host and port to listen on; port 0 for any free one.
      host: name or address by which the processes reach this one.
      restarts: begin a new generation after a death, when all ranks are there again; otherwise
        no process can join after a death.
      patience: seconds for all processes to come.
      freeze: seconds of silence after which a process counts as frozen.
      grace: seconds for survivors to leave a generation that has ended.
      late: seconds after which a rank that has not come is reported to the others.
      on_lost: called with the rank and the process identifier of a process that a supervisor has
        to end and restart, and the reason.
      service: further arguments of the coordination services.

    Raises:
      OSError: the address cannot be listened on.
    """

    def __init__(
        self, bind: tuple[str, int], host: str, num_processes: int, *, restarts: bool = False,
        patience: float = 300, freeze: float = 8, grace: float = 10, late: float = 30,
        on_lost: Callable[[int, int, str], None] | None = None, **service: Any,
    ):  # fmt: skip
        family = socket.AF_INET6 if ":" in bind[0] else socket.AF_INET
        self._listener = socket.create_server(bind, family=family, backlog=512)
        self._bind_host = bind[0]
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self.num_processes = num_processes
        self.generation: int = 0
        self.failure: str | None = None  # why no process can join
        self._restarts, self._patience, self._freeze = restarts, patience, freeze
        self._grace, self._late = grace, late
        self._on_lost, self._service_options = on_lost, service
        self._peers: dict[int, Peer] = {}  # by rank
        self._unknown: set[Peer] = set()
        self._refused: list[str] = []
        self._service: Service | None = None
        self._ended_at: float | None = None  # of the running generation
        self._waiting_since: float | None = None
        self._agreement = Agreement()
        self._compares: tuple[bool, str] | None = None
        self._beat = 0.0
        self._stop = threading.Event()
        self._select = selectors.DefaultSelector()
        self._listener.setblocking(False)
        self._select.register(self._listener, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The address to which processes connect."""
        return joined_address(self.host, self.port)

    def members(self) -> list[int]:
        """The ranks that are connected."""
        return sorted(self._peers)

    def close(self, seconds: float = 0) -> None:
        """End the coordinator, after the other processes have gone or ``seconds`` have passed."""
        deadline = time.monotonic() + seconds
        while self._peers and time.monotonic() < deadline:
            time.sleep(_TICK / 5)
        self._stop.set()
        self._thread.join()
        service, self._service = self._service, None
        if service is not None:
            service.end()

    # The loop

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                for key, _ in self._select.select(_TICK):
                    if key.data is None:
                        self._accept()
                    else:
                        self._read(key.data)
                self._check()
        finally:
            for peer in [*self._peers.values(), *self._unknown]:
                peer.connection.close()
            self._listener.close()
            self._select.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        connection.settimeout(2)  # of sending; reading waits for the selector
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(connection)
        self._unknown.add(peer)
        self._select.register(connection, selectors.EVENT_READ, peer)
        peer.send(GREETING)

    def _read(self, peer: Peer) -> None:
        try:
            data = peer.connection.recv(1 << 16)
            messages = peer.lines.add(data) if data else None
        except (OSError, ValueError):
            messages = None
        if messages is None:
            self._closed(peer, "its process ended")
            return
        peer.heard = time.monotonic()
        for message in messages:
            try:
                self._receive(peer, message)
            except (KeyError, TypeError, ValueError) as e:
                self._refuse(peer, f"a message of this process is not understood: {e!r}")

    def _receive(self, peer: Peer, message: Message) -> None:
        if "hello" in message:
            self._hello(peer, message)
        elif "at" in message:
            begun, peer.where = int(message["at"]), str(message.get("where", ""))
            if begun != peer.begun:
                peer.begun, peer.begun_since = begun, peer.heard
        elif "begins" in message:
            self._begins(peer, message["begins"])
        elif "done" in message:
            peer.state = "done"
            if all(p.state == "done" for p in self._peers.values()) and self._full():
                self._broadcast({"complete": self.generation})
        elif "left" in message:
            self._forget(peer)
            self._broadcast({"left": peer.rank})
        elif "failed" in message:
            self._closed(peer, f"it raised {message['failed']}")

    def _hello(self, peer: Peer, message: Message) -> None:
        rank, n = int(message["hello"]), int(message["n"])
        peer.pid = int(message.get("pid", 0))
        peer.who = f"process {peer.pid} on {message.get('host')}"
        if self.failure is not None:
            self._refuse(peer, self.failure)
        elif n != self.num_processes:
            text = (
                f"{peer.who} says that there are {n} processes, but the coordinator expects "
                f"{self.num_processes}: give all processes the same num_processes"
            )
            self._fail(text)
            self._refuse(peer, text)
        elif not 0 <= rank < n:
            self._refuse(peer, f"there is no rank {rank} among {n} processes")
        elif not self._compares_alike(peer, bool(message.get("compares"))):
            pass
        elif self._peers.get(rank, peer) is not peer:
            self._refuse(
                peer,
                f"rank {rank} is {self._peers[rank].who}, so {peer.who} cannot have the same "
                "number: give each process its own process_id",
            )
        else:
            self._unknown.discard(peer)
            self._peers[rank] = peer
            peer.rank, peer.state = rank, "waiting"
            if self._waiting_since is None:
                self._waiting_since = time.monotonic()
            self._begin_when_full()

    # Programs

    def _compares_alike(self, peer: Peer, compares: bool) -> bool:
        """Return True if a process compares programs as the first one does; else refuse it."""
        first, who = self._compares = self._compares or (compares, peer.who)
        if first == compares:
            return True
        on, off = (who, peer.who) if first else (peer.who, who)
        text = (
            f"{on} has compare_programs on and {off} has not: give all processes the same argument "
            "compare_programs, or the same variable PRIMAX_COMPARE_PROGRAMS"
        )
        self._fail(text)
        self._refuse(peer, text)
        return False

    def _begins(self, peer: Peer, program: list[Any]) -> None:
        if peer.rank is None or self._ended_at is not None:
            return
        difference = self._agreement.begin(peer.rank, program)
        if difference is not None:
            self._ended_at = time.monotonic()
            if not self._restarts:
                self.failure = f"the programs differed ({difference}): start all processes again"
            self._broadcast({"differ": difference, "generation": self.generation})

    # Generations

    def _full(self) -> bool:
        return len(self._peers) == self.num_processes

    def _begin_when_full(self) -> None:
        if not self._full() or any(p.state != "waiting" for p in self._peers.values()):
            return
        _end(self._service)
        try:
            port = self._begin_service()
        except (RuntimeError, ValueError, OSError) as e:
            self._fail(f"the coordination service cannot start: {e}")
            return
        self.generation += 1
        self._agreement = Agreement()
        self._ended_at = self._waiting_since = None
        now = time.monotonic()
        for peer in self._peers.values():
            peer.state, peer.begun, peer.begun_since, peer.late_told = "running", 0, now, -1
        self._broadcast({"go": joined_address(self.host, port), "generation": self.generation})

    def _begin_service(self) -> int:
        host = self._bind_host or ("::" if socket.has_dualstack_ipv6() else "0.0.0.0")
        for attempt in range(5):
            port = free_port(self._bind_host)
            try:
                address = joined_address(host, port)
                self._service = Service(address, self.num_processes, **self._service_options)
                return port
            except RuntimeError:  # another program has taken the port in the meantime
                if attempt == 4:
                    raise
        raise AssertionError("unreachable")

    def _closed(self, peer: Peer, why: str) -> None:
        """A connection ended without a farewell: its process died."""
        state, rank = peer.state, peer.rank
        self._forget(peer)
        if rank is None:
            return
        if state in ("running", "done"):
            self._end_generation(rank, why)
        if self._on_lost is not None:
            self._on_lost(rank, peer.pid, why)

    def _end_generation(self, rank: int, why: str) -> None:
        if self._ended_at is None:
            self._ended_at = time.monotonic()
        if not self._restarts:
            self.failure = f"rank {rank} died ({why}): start all processes again"
        self._broadcast({"dead": rank, "why": why, "generation": self.generation})

    def _fail(self, text: str) -> None:
        """Refuse the processes that wait, and all that come later."""
        self.failure = text
        for peer in [p for p in self._peers.values() if p.state == "waiting"]:
            self._refuse(peer, text)

    def _refuse(self, peer: Peer, text: str) -> None:
        self._refused.append(text)
        peer.send({"refused": text})
        self._forget(peer)

    def _forget(self, peer: Peer) -> None:
        peer.state = "lost"
        self._unknown.discard(peer)
        if peer.rank is not None and self._peers.get(peer.rank) is peer:
            del self._peers[peer.rank]
        try:
            self._select.unregister(peer.connection)
        except (KeyError, ValueError):
            pass
        peer.connection.close()

    def _broadcast(self, message: Message) -> None:
        for peer in list(self._peers.values()):
            peer.send(message)

    # What time brings

    def _check(self) -> None:
        now = time.monotonic()
        if now - self._beat >= 1:
            self._beat = now
            self._broadcast({"beat": self.generation})
        for peer in list(self._peers.values()):
            if now - peer.heard > self._freeze:
                self._closed(peer, f"it has not answered for {now - peer.heard:.0f} s")
        if self._ended_at is not None and now - self._ended_at > self._grace and self._restarts:
            for peer in list(self._peers.values()):
                if peer.state == "running":
                    self._closed(peer, f"it did not leave its generation within {self._grace:g} s")
        if self._waiting_since is not None and now - self._waiting_since > self._patience:
            self._fail(self._missing_text())
            self._waiting_since = None
        self._check_late(now)

    def _missing_text(self) -> str:
        missing = [str(r) for r in range(self.num_processes) if r not in self._peers]
        text = (
            f"{len(missing)} of {self.num_processes} processes did not come within "
            f"{self._patience:g} s: rank{'s' if len(missing) > 1 else ''} {', '.join(missing[:20])}"
        )
        if self._refused:
            text += f". Refused: {'; '.join(self._refused[:3])}"
        return text

    def _check_late(self, now: float) -> None:
        running = [p for p in self._peers.values() if p.state in ("running", "done")]
        most = max((p.begun for p in running), default=0)
        late = [
            (p.rank, p.begun, p.where)
            for p in running
            if p.begun < most and now - p.begun_since > self._late
        ]
        if not late or self._ended_at is not None:
            return
        for peer in running:
            behind = [x for x in late if x[1] < peer.begun]
            if behind and peer.late_told != peer.begun and now - peer.begun_since > self._late:
                peer.late_told = peer.begun
                peer.send({"late": behind})


def _end(service: Service | None) -> None:
    """End a service in another thread: it may wait for members that died.

    The thread is no daemon: at the exit of the interpreter no thread may be inside of jaxlib.
    """
    if service is not None:
        threading.Thread(target=service.end, name="end of a generation").start()
