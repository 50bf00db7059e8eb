"""``initialize`` and ``shutdown``: this process among those that compute together."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from primax_core.extend import processes as core
from primax_core.extend.runtime import started_clients

from ._agreement import message_of
from ._clusters import Place, detect
from ._contact import Contact
from ._coordinator import Coordinator
from ._errors import JoinError, ProcessFailure, ProgramMismatchError
from ._late import Counts
from ._wire import split_address

_CONNECTING: Final = 15
"""Seconds to connect to the coordination service; all processes are there when that begins."""


@dataclass(frozen=True)
class Timeouts:
    """Seconds to wait, as the arguments of :func:`initialize`."""

    initialization: float = 300
    heartbeat: int = 100
    shutdown: float = 300
    freeze: float = 8
    late: float = 30


@dataclass
class Joined:
    """State of this process while it computes with others."""

    place: Place
    contact: Contact
    counts: Counts
    coordinator: Coordinator | None
    timeouts: Timeouts
    mtls: dict[str, Any]
    plugin_options: dict[str, Any]
    member: core.Member | None = None

    def enter(self) -> int:
        """Join the next generation, with new clients; return its number."""
        self.leave()
        address, generation = self.contact.join()
        self.counts.restart()
        self.member = core.Member(
            address, self.contact.rank, self.contact.num_processes, patience=_CONNECTING,
            heartbeat=self.timeouts.heartbeat, **self.mtls,
        )  # fmt: skip
        core.join(self.member, host=self.contact.own_host, plugin_options=self.plugin_options)
        try:
            core.connect_devices(self.member)
        except RuntimeError as e:
            raise self.explain(e) from e
        return generation

    def leave(self) -> None:
        """Leave the generation, so that the end of its service does not end this process."""
        member, self.member = self.member, None
        if member is not None:
            try:
                member.leave()
            except RuntimeError:  # its service is gone
                pass

    def end_collectives(self) -> None:
        """Called in another thread when the generation has ended."""
        member = self.member
        if member is None:
            return
        gone = self.contact.coordinator_gone
        core.abort_collectives(member, service_answers=not gone)
        if gone:
            self.leave()

    def give_up(self, error: BaseException) -> None:
        """Go, after this process could not join."""
        self.leave()
        expected = isinstance(error, (JoinError, ProcessFailure))
        self.contact.close(None if expected else f"{type(error).__name__}: {error}")
        if self.coordinator is not None:
            self.coordinator.close(1)
        core.forget()

    def explain(self, error: BaseException) -> BaseException:
        """The error that names the dead ranks, in place of that of an operation."""
        if isinstance(error, (ProcessFailure, ProgramMismatchError, JoinError)):
            return error
        text = str(error)
        if any(word in text for word in _OF_OTHERS):
            self.contact.wait_for_news(self.timeouts.freeze + 2)
        failure = self.contact.failure()
        if failure is None:
            return error
        failure.__cause__ = error
        return failure

    def watch(self, program: core.SharedProgram) -> Callable[[], None]:
        """The function that is called before each run of a program, if programs are compared."""
        contact, counts, line = self.contact, self.counts, message_of(program)
        name = program.name

        def begin() -> None:
            if contact.difference is not None:
                failure = contact.failure()
                assert failure is not None
                raise failure
            counts.begin(name)
            contact.begun.append(line)

        return begin


# What jaxlib's errors contain, if another process caused them.
_OF_OTHERS: Final = (
    "Gloo", "gloo", "GetKeyValue", "Connection closed", "oordination", "NCCL", "topolog",
    "ALREADY_EXISTS", "process_index",
)  # fmt: skip

_lock: Final = threading.Lock()
_joined: Joined | None = None


def joined() -> Joined | None:
    """The state that :func:`initialize` created, or ``None``."""
    return _joined


def member() -> core.Member | None:
    """The key-value store and the barriers of this generation, or ``None`` before joining.

    A :class:`primax_core.extend.processes.Member`, for libraries.

    >>> from primax_distributed import processes
    >>> processes.member() is None
    True
    """
    return None if _joined is None else _joined.member


def is_initialized() -> bool:
    """Return True between :func:`initialize` and :func:`shutdown`.

    >>> from primax_distributed import processes
    >>> processes.is_initialized()
    False
    """
    return _joined is not None


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: float = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: float = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
    *,
    freeze_timeout_seconds: float = 8,
    late_after_seconds: float = 30,
    compare_programs: bool | None = None,
) -> None:
    """Compute together with other processes, which call this too, before any use of a device.

    Afterwards ``devices()`` are those of all processes, and ``local_devices()`` those of this one.
    Give the first three arguments, or start the processes with one of the launchers of
    :doc:`/processes`, which say them by environment variables. Rank 0 runs the coordinator.

    When a process dies or freezes, the operations of the others raise :class:`ProcessFailure`,
    which names its rank. A process that lives but does not come is named in a warning, with the
    line at which it is.

    Args:
      coordinator_address: ``host:port`` of rank 0.
      num_processes: number of processes.
      process_id: number of this process, its rank: ``0 <= process_id < num_processes``.
      local_device_ids: indices of the devices that this process uses, of a GPU plugin.
      cluster_detection_method: one of ``"primax"``, ``"torchrun"``, ``"ompi"``, ``"slurm"``,
        ``"k8s"`` and ``"mpi4py"``; by default all but the last are tried.
      initialization_timeout: seconds to wait for the others.
      heartbeat_timeout_seconds: seconds after which the coordination service drops a process.
      shutdown_timeout_seconds: seconds that rank 0 waits for the others at the end.
      coordinator_bind_address: ``host:port`` to listen on, if not that of the coordinator.
      slice_index, partition_index: position of this process among slices of TPUs.
      mtls_cert_file, mtls_key_file, mtls_ca_file, mtls_peer_uri_prefix,
        verify_secure_credentials: certificates of the coordination service.
      freeze_timeout_seconds: seconds without a sign of life after which a process counts as
        frozen.
      late_after_seconds: seconds after which a process that has not begun a program is reported.
      compare_programs: compare the programs that the processes begin. If they differ, the
        operations of all raise :class:`ProgramMismatchError`, which names the ranks, the functions
        and the difference. By default the variable ``PRIMAX_COMPARE_PROGRAMS``, else off.

    Raises:
      RuntimeError: it was called before, or devices are in use.
      ValueError: arguments are missing or contradict each other.
      JoinError: the others did not come, or refuse this process; nothing was started.

    >>> from primax_distributed import processes
    >>> processes.initialize("127.0.0.1:8476", num_processes=2, process_id=2)
    Traceback (most recent call last):
    ValueError: process_id must be from 0 to num_processes - 1 = 1, got 2
    """
    mtls = {
        "mtls_cert_file": mtls_cert_file, "mtls_key_file": mtls_key_file,
        "mtls_ca_file": mtls_ca_file, "mtls_peer_uri_prefix": mtls_peer_uri_prefix,
        "verify_secure_credentials": verify_secure_credentials,
    }  # fmt: skip
    mtls = {name: value for name, value in mtls.items() if value is not None}
    partition = slice_index if partition_index is None else partition_index
    timeouts = Timeouts(
        initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds,
        freeze_timeout_seconds, late_after_seconds,
    )  # fmt: skip
    compares = _compares() if compare_programs is None else compare_programs
    with _lock:
        _check_not_joined()
        place = _place(coordinator_address, num_processes, process_id, cluster_detection_method)
        options = _plugin_options(local_device_ids, partition)
        this = _start(place, timeouts, coordinator_bind_address, mtls, options, compares)
        try:
            this.enter()
        except BaseException as e:
            this.give_up(e)
            raise
        _keep(this)


def start() -> Joined:
    """Find this process among the others, for :func:`generations`; no generation begins yet."""
    with _lock:
        if _joined is None:
            _keep(_start(_place(None, None, None, None), Timeouts(), None, {}, {}, _compares()))
        assert _joined is not None
        return _joined


def _keep(this: Joined) -> None:
    global _joined
    core.explain_failures(this.explain)
    if this.contact.compares:
        core.watch_runs(make=this.watch)
    else:
        core.watch_runs(this.counts.begin)
    _joined = this
    _register_exit()


def _start(
    place: Place, timeouts: Timeouts, bind: str | None, mtls: dict[str, Any],
    plugin_options: dict[str, Any], compares: bool,
) -> Joined:  # fmt: skip
    if started_clients():
        raise RuntimeError(
            "distributed.initialize() must be called before the first use of a device. That "
            "includes every computation on arrays, devices() and device_put: call it first."
        )
    coordinator = None
    if place.rank == 0 and not place.supervised:
        coordinator = _start_coordinator(
            place, bind, patience=timeouts.initialization, freeze=timeouts.freeze,
            late=timeouts.late, heartbeat=timeouts.heartbeat, **mtls,
        )  # fmt: skip
    counts = Counts()
    try:
        contact = Contact(
            place.address, place.rank, place.num_processes, patience=timeouts.initialization,
            freeze=timeouts.freeze, host_rank=None if place.supervised else 0,
            report=counts.report, on_late=lambda late: counts.tell(place.rank, late),
            compares=compares,
        )  # fmt: skip
    except BaseException:
        if coordinator is not None:
            coordinator.close()
        raise
    this = Joined(place, contact, counts, coordinator, timeouts, mtls, plugin_options)
    contact.on_end = this.end_collectives
    return this


def _compares() -> bool:
    text = os.environ.get("PRIMAX_COMPARE_PROGRAMS", "0").lower()
    if text not in _YES_OR_NO:
        raise ValueError(f"PRIMAX_COMPARE_PROGRAMS must be 0 or 1, got {text!r}")
    return _YES_OR_NO[text]


_YES_OR_NO: Final = {"": False, "0": False, "false": False, "1": True, "true": True}


def _check_not_joined() -> None:
    if _joined is not None:
        raise RuntimeError(
            "distributed.initialize should only be called once. This process is "
            f"rank {_joined.contact.rank} of {_joined.contact.num_processes}; call "
            "distributed.shutdown() before, to join other processes."
        )


def _place(address: str | None, n: int | None, rank: int | None, method: str | None) -> Place:
    """The place of this process: as given, or as found where something is not given."""
    if address is not None and n is not None and rank is not None and method is None:
        place = Place(address, n, rank, None, "arguments")
    else:
        detected = _detected(address, n, rank, method)
        place = dataclasses.replace(
            detected,
            address=detected.address if address is None else address,
            num_processes=detected.num_processes if n is None else n,
            rank=detected.rank if rank is None else rank,
        )
    if place.num_processes < 1:
        raise ValueError(f"num_processes must be at least 1, got {place.num_processes}")
    if not 0 <= place.rank < place.num_processes:
        raise ValueError(
            f"process_id must be from 0 to num_processes - 1 = {place.num_processes - 1}, got "
            f"{place.rank}"
        )
    split_address(place.address)
    return place


def _detected(address: str | None, n: int | None, rank: int | None, method: str | None) -> Place:
    arguments = {"coordinator_address": address, "num_processes": n, "process_id": rank}
    present = [name for name, value in arguments.items() if value is not None]
    try:
        return detect(method)
    except JoinError as e:
        if not present:
            raise
        missing = [name for name in arguments if name not in present]
        raise ValueError(
            f"{' and '.join(present)} given, but not {' and '.join(missing)}, and the environment "
            f"does not say the rest: {e}"
        ) from None


def _start_coordinator(place: Place, bind: str | None, **options: Any) -> Coordinator:
    host, port = split_address(place.address)
    bind_host, bind_port = ("", port) if bind is None else split_address(bind)
    if bind is None and host in ("127.0.0.1", "localhost", "::1"):
        bind_host = "::1" if host == "::1" else "127.0.0.1"
    try:
        return Coordinator((bind_host, bind_port), host, place.num_processes, **options)
    except OSError as e:
        raise JoinError(
            f"the coordinator cannot listen on port {bind_port} of this machine: "
            f"{e.strerror or e}. Another program uses it, or another job: give a "
            "coordinator_address with another port."
        ) from e


def _plugin_options(local_device_ids: Any, partition: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if local_device_ids is not None:
        ids = [local_device_ids] if isinstance(local_device_ids, int) else list(local_device_ids)
        options["visible_devices"] = ids
    if partition is not None:
        options["partition_index"] = partition
    return options


def shutdown() -> None:
    """Leave the other processes. Existing arrays are lost.

    Rank 0 waits for the others, up to ``shutdown_timeout_seconds``. It happens by itself at the
    exit of the process. Without :func:`initialize` it does nothing.

    >>> from primax_distributed import processes
    >>> processes.shutdown()
    """
    _shut_down(None)


def _shut_down(failed: str | None) -> None:
    global _joined
    with _lock:
        this, _joined = _joined, None
        if this is None:
            return
        core.explain_failures(None)
        core.watch_runs(None)
        this.leave()
        this.contact.close(failed)
        if this.coordinator is not None:
            # After a failure the others need only the time to hear of it.
            this.coordinator.close(3 if failed else this.timeouts.shutdown)
        core.forget()


@functools.cache
def _register_exit() -> None:
    # Before the handlers of ``atexit``: one of the core ends all threads, also the coordinator's.
    register = getattr(threading, "_register_atexit", atexit.register)
    register(_at_exit)


def _at_exit() -> None:
    error = getattr(sys, "last_value", None)
    _shut_down(None if error is None else f"{type(error).__name__}: {error}".partition("\n")[0])
