"""Several processes: the coordination service, its members, and clients over all processes.

The processes that compute together form a *generation*: a coordination service, and one member of
it in each process. A generation ends when a member dies; the others leave it, and may join the
next one, with another service. Nothing of this module is loaded for a single process.
"""

from __future__ import annotations

import gc
import hashlib
import re
import socket
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn

from .._base import caches
from .._base.config import renew_keys
from .._base.errors import ErrorWithPage
from .._ir.avals import ShapedArray
from . import (
    array as _array,
    devices as _devices,
    dispatch,
    failures,
    parts,
    plugins,
    several_devices,
    sharding as _sharding,
)
from .jaxlib_errors import JaxRuntimeError
from .jaxlib_versions import (
    collect_garbage,
    distributed_client,
    distributed_service,
    gloo_collectives,
    preemption_manager,
)
from .tiled_sharding import TiledSharding


class LeftGenerationError(ErrorWithPage, RuntimeError, page=True):
    """An array or a device of a generation of processes that this process has left."""


class BarrierTimeoutError(ErrorWithPage, TimeoutError, page=True):
    """Some ranks did not come to a barrier in time; ``ranks`` are those, if they are known."""

    def __init__(self, message: str, ranks: Sequence[int] = ()):
        super().__init__(message)
        self.ranks: tuple[int, ...] = tuple(ranks)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.ranks)


# The service and its members


class Service:
    """The coordination service of one generation.

    When it ends, processes that are still members are aborted by jaxlib. Host it in a process that
    computes nothing, if the others should survive the death of any one of them.

    Args:
      address: ``host:port`` to listen on; ``[::]:port`` for all interfaces.
      num_processes: number of members.
      heartbeat: seconds without a sign of life after which a member counts as dead.
      register: seconds within which all members must connect.
      shutdown: seconds that :meth:`end` waits for members that have not left.
      mtls: paths of certificates (``mtls_cert_file`` ...), with jaxlib 0.11 or newer.

    Raises:
      ValueError: the address is none.
      RuntimeError: it cannot be listened on.
    """

    def __init__(
        self, address: str, num_processes: int, *, heartbeat: int = 100, register: int = 300,
        shutdown: int = 5, **mtls: Any,
    ):  # fmt: skip
        _check_number(num_processes)
        self.address = address
        self.num_processes = num_processes
        _check_listens(address)
        self._raw = distributed_service(
            address, num_processes, heartbeat_timeout=heartbeat, shutdown_timeout=shutdown,
            cluster_register_timeout=register, **mtls,
        )  # fmt: skip

    def end(self) -> None:
        """End the service. Members must have left before."""
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.shutdown()


def _check_listens(address: str) -> None:
    """Raise an error where jaxlib would end the process: it cannot listen on the address."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(
            f"{address!r} is no address to listen on: write host:port, or [::]:port for all "
            "interfaces"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, int(port)), family=family).close()
    except OSError as e:
        raise RuntimeError(
            f"the coordination service cannot listen on {address}: {e.strerror or e}. Another "
            "program may use the port: choose another one."
        ) from e


def _check_number(n: int) -> None:
    if n < 1:
        raise ValueError(f"the number of processes must be at least 1, got {n}")


class Member:
    """This process in a generation: a store of keys, barriers, and the list of the living.

    It connects at once, and returns when all members have. jaxlib aborts the process if they do
    not within ``patience`` seconds, so make sure before that all are there.

    Args:
      address: ``host:port`` of the service.
      rank: number of this process, from 0 to ``num_processes - 1``.
      num_processes: number of members.
      heartbeat: seconds after which a member without a sign of life counts as dead.
      patience: seconds to wait for the others.
      mtls: as for :class:`Service`.
    """

    def __init__(
        self, address: str, rank: int, num_processes: int, *, heartbeat: int = 100,
        patience: int = 300, **mtls: Any,
    ):  # fmt: skip
        _check_number(num_processes)
        if not 0 <= rank < num_processes:
            raise ValueError(
                f"the rank of a process must be from 0 to {num_processes - 1}, got {rank}"
            )
        self.address = address
        self.rank = rank
        self.num_processes = num_processes
        self._raw = distributed_client(
            address, rank, init_timeout=patience, shutdown_timeout=5, heartbeat_timeout=heartbeat,
            **mtls,
        )  # fmt: skip
        self._left = False
        self._ports: set[int] = set()
        self._raw.connect()

    def set(self, key: str, value: str, *, overwrite: bool = False) -> None:
        """Store a value that all members can read.

        Raises:
          ValueError: the key has a value and ``overwrite`` is false.
        """
        try:
            self._client().key_value_set(key, value, overwrite)
        except JaxRuntimeError as e:
            if "ALREADY_EXISTS" in str(e):
                raise ValueError(f"the key {key!r} has a value already") from e
            self._explain(e)

    def get(self, key: str, seconds: float) -> str:
        """The value of a key, after a member has stored it.

        Raises:
          TimeoutError: no member did so within ``seconds``.
        """
        try:
            value: str = self._client().blocking_key_value_get(key, max(1, int(seconds * 1000)))
            return value
        except JaxRuntimeError as e:
            if "DEADLINE_EXCEEDED" in str(e):
                raise TimeoutError(
                    f"no process has stored the key {key!r} within {seconds:g} s"
                ) from e
            self._explain(e)

    def peek(self, key: str) -> str | None:
        """The value of a key, or ``None`` if it has none yet."""
        try:
            value: str = self._client().key_value_try_get(key)
            return value
        except JaxRuntimeError as e:
            if "NOT_FOUND" in str(e):
                return None
            self._explain(e)

    def folder(self, prefix: str) -> dict[str, str]:
        """The keys that begin with ``prefix/``, and their values."""
        return dict(self._client().key_value_dir_get(prefix.rstrip("/") + "/"))

    def delete(self, key: str) -> None:
        """Remove a key, or all keys below it if it ends in ``/``."""
        self._client().key_value_delete(key)

    def barrier(self, name: str, seconds: float, ranks: Sequence[int] | None = None) -> None:
        """Wait until all members, or those of ``ranks``, have called this with the same name.

        Raises:
          BarrierTimeoutError: some did not within ``seconds``; the message names them.
        """
        members = None if ranks is None else list(ranks)
        try:
            self._client().wait_at_barrier(name, max(1, int(seconds * 1000)), members)
        except JaxRuntimeError as e:
            if "DEADLINE_EXCEEDED" not in str(e):
                self._explain(e)
            missing = _missing_ranks(str(e))
            who = ranks_text(missing) if missing else "some processes"
            raise BarrierTimeoutError(
                f"{who} did not come to the barrier {name!r} within {seconds:g} s", missing
            ) from e

    def alive(self) -> list[int]:
        """The ranks that live, the same for all: returns when each has asked or is known dead."""
        return sorted(self._client().get_live_nodes(list(range(self.num_processes))))

    def reached_sync_point(self, step: int) -> bool:
        """Return True at the step at which all members stop, after a notice of preemption.

        The notice is a SIGTERM to any of them, after which a process goes on.
        """
        manager = getattr(self, "_preemption", None)
        if manager is None:
            manager = self._preemption = self.watch_preemption()
        return bool(manager.reached_sync_point(step))

    def watch_preemption(self) -> Any:
        """Begin to wait for notices of preemption; called in all members."""
        manager = self._preemption = preemption_manager(self._client())
        return manager

    def leave(self) -> None:
        """Leave the generation; the others go on, and the service may end."""
        if not self._left:
            self._left = True
            self._preemption = None
            try:
                self._raw.shutdown()
            finally:
                self._raw = None

    def _client(self) -> Any:
        if self._raw is None:
            raise LeftGenerationError(f"rank {self.rank} has left {self.address}")
        return self._raw

    def _explain(self, error: Exception) -> NoReturn:
        raise RuntimeError(
            f"rank {self.rank} has lost the coordination service at {self.address}: "
            f"{first_line(error)}"
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return str(error).partition("\n")[0].strip()


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 1``, ``ranks 1 and 2``, ``ranks 1, 2 and 5``."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


_TASKS: Final = re.compile(r"timed out task names:\n((?:\d+\n?)*)")


def _missing_ranks(text: str) -> list[int]:
    names = _TASKS.search(text)
    return sorted(map(int, names[1].split())) if names else []


# Joining and leaving

_forgetters: list[Callable[[], None]] = []


def on_forget(callback: Callable[[], None]) -> Callable[[], None]:
    """Register a function that drops a wheel's own objects with devices: meshes, shardings.

    Args:
      callback: a function without arguments, called by :func:`forget`.

    Returns:
      ``callback``: the function is usable as a decorator.

    Objects with devices of an ended generation must not be used with the devices of the next.

    >>> from primax_core.extend.processes import on_forget
    >>> meshes = {}
    >>> @on_forget
    ... def drop_meshes():
    ...     meshes.clear()
    """
    _forgetters.append(callback)
    return callback


_keepers: list[Callable[[], Callable[[], None]]] = []


def before_forgetting(keep: Callable[[], Callable[[], None]]) -> Callable[[], Callable[[], None]]:
    """Register a function called while the old clients exist; what it returns is called after."""
    _keepers.append(keep)
    return keep


def join(
    member: Member, *, local_devices: int | None = None, host: str | None = None,
    plugin_options: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Compute with all members of a generation, on their CPU devices or those of a plugin.

    The clients of before are dropped, as by :func:`forget`. The new ones start with the first use
    of a device, in all processes: it returns when all have reached it.

    Args:
      member: this process in its generation: its number, the number of processes, the connection
        to the coordination service.
      local_devices: CPU devices of this process; by default the option ``num_cpu_devices``.
      host: name or address by which the others reach this process.
      plugin_options: options of the clients of plugins, such as ``visible_devices``.

    Returns:
      ``None``.

    Raises:
      ValueError: if an option is not valid.

    Every member calls it. :func:`connect_devices` then starts the clients.
    """
    forget()
    raw = member._client()
    plugins.joined.update(
        distributed_client=raw, node_id=member.rank, num_nodes=member.num_processes,
        collectives=gloo_collectives(raw, host),
    )  # fmt: skip
    if local_devices is not None:
        plugins.joined["num_devices"] = local_devices
    plugins.plugin_options.update(plugin_options or {})


def forget() -> None:
    """Drop the clients, and everything cached with them. Their arrays are lost.

    Traced functions, executables and the objects of wheels (:func:`on_forget`) are dropped too.
    The next use of a device starts new clients.

    Returns:
      ``None``.

    It is the end of a generation: after a process has died, or to compute alone again. Values
    that are needed later must be on the host.
    """
    stores = [keep() for keep in _keepers] if _devices._clients else []
    plugins.joined.clear()
    plugins.plugin_options.clear()
    if _devices._clients:
        _lose_arrays()
        _left.update(_devices._clients.values())
        _devices.check_current = _check_current
    _devices._clients = {}
    _devices._first.clear()
    for spec in _array._specs.values():
        spec.handler = None  # jaxlib's objects are not part of garbage collection
    _array._specs.clear()
    _sharding.SingleDeviceSharding._instances.clear()
    TiledSharding._instances.clear()
    parts._orders.clear()
    several_devices._in_flight.clear()
    for callback in _forgetters:
        callback()
    caches.clear_all()
    for store in stores:
        store()
    renew_keys()
    gc.collect()
    collect_garbage()


class _LostBuffer:
    """The buffer of an array of a left generation: it counts as deleted."""

    __slots__ = ()

    error = LeftGenerationError
    lost = (
        "belongs to a generation of processes that has ended: its values are lost. Restore it from "
        "a checkpoint, or compute it again."
    )

    def is_deleted(self) -> bool:
        return True


class _LostSpec:
    """The spec of an array of a left generation: its type is known, it has no devices."""

    __slots__ = ("aval", "committed", "layout", "stored", "__weakref__")

    def __init__(self, spec: Any):
        self.aval: ShapedArray = spec.aval
        self.stored: ShapedArray = spec.stored
        self.committed = spec.committed
        self.layout = spec.layout

    @property
    def sharding(self) -> Any:
        raise LeftGenerationError(f"the array of type {self.aval.str_short()} {_LostBuffer.lost}")


_LOST: Final = _LostBuffer()


def _lose_arrays() -> None:
    specs: dict[Any, _LostSpec] = {}
    for x in gc.get_objects():
        if not issubclass(type(x), _array.ArrayImpl) or not hasattr(x, "_spec"):
            continue
        array: Any = x
        vars(array).pop("_own_parts", None)
        spec = array._spec
        if type(spec) is not _LostSpec:
            if spec not in specs:
                specs[spec] = _LostSpec(spec)
            array._buf, array._spec = _LOST, specs[spec]


_left: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def _check_current(devices: Sequence[Any]) -> None:
    if devices and getattr(devices[0], "client", None) in _left:
        raise LeftGenerationError(
            f"{devices[0]} belongs to a generation of processes that has ended: make meshes and "
            "shardings of the devices of the new one (devices())"
        )


# Failures and runs


def explain_failures(explain: Callable[[BaseException], BaseException] | None) -> None:
    """Let a function replace the errors of executables.

    Errors of collectives say little when another process has died; the wheel for several
    processes knows more.

    Args:
      explain: ``explain(error)`` returns the error for the user, which may be the same; ``None``
        restores the default.

    Returns:
      ``None``.

    The function is called in the thread that reads a failed result.

    >>> from primax_core.extend.processes import explain_failures
    >>> explain_failures(lambda error: error)
    >>> explain_failures(None)
    """
    failures.explain_other = explain


class SharedProgram(NamedTuple):
    """An executable over the devices of several processes.

    Attributes:
      name: the name of its function.
      types: the types and shardings of its arguments and results, as text.
      digest: a digest of its module and devices; empty if it calls Python functions.
      ranks: the processes whose devices it uses.
    """

    name: str
    types: str
    digest: str
    ranks: tuple[int, ...]


def watch_runs(
    before: Callable[[str], None] | None = None,
    *,
    make: Callable[[SharedProgram], Callable[[], None]] | None = None,
) -> None:
    """Call a function before each run of an executable over several processes.

    It concerns executables that are compiled from now on. All processes must run the same
    executables in the same order; a watcher can compare them.

    Args:
      before: called with the name.
      make: called with each executable, instead; returns the function that is called before each
        of its runs, and may raise an error.

    Returns:
      ``None``.

    Runs on the devices of one process are not watched.
    """
    if before is not None:
        make = _by_name(before)
    dispatch.wrap_execute = None if make is None else _wrapper(make)


def _by_name(before: Callable[[str], None]) -> Callable[[SharedProgram], Callable[[], None]]:
    return lambda program: partial(before, program.name)


def _wrapper(make: Callable[[SharedProgram], Callable[[], None]]) -> Callable[..., Any]:
    def wrap(
        execute: Callable[..., Any], in_shardings: Sequence[Any], in_specs: Sequence[Any],
        out_specs: Sequence[Any], name: str, digest: bytes,
    ) -> Callable[..., Any]:  # fmt: skip
        shardings = [*in_shardings, *(s.sharding for s in out_specs)]
        shared = [s for s in shardings if s is not None and not s.is_fully_addressable]
        if not shared:
            return execute
        before = make(_shared_program(name, in_specs, out_specs, digest, shared[0]._devices))

        def run(*args: Any, **kwargs: Any) -> Any:
            before()
            return execute(*args, **kwargs)

        return run

    return wrap


def _shared_program(
    name: str, ins: Sequence[Any], outs: Sequence[Any], digest: bytes, devices: Sequence[Any]
) -> SharedProgram:
    ranks = tuple(sorted({d.process_index for d in devices}))
    ids = repr([d.id for d in devices]).encode()
    described = hashlib.sha256(digest + ids).hexdigest()[:16] if digest else ""
    texts = [", ".join(map(_typed, specs)) for specs in (ins, outs)]
    return SharedProgram(name, " -> ".join(f"({t})" for t in texts), described, ranks)


def _typed(spec: Any) -> str:
    axes = getattr(spec.sharding, "spec", None)
    return spec.aval.str_short() + ("" if axes is None or not any(axes) else f" {axes}")
