"""State of computations over several processes, as libraries read it."""

import sys as _sys
from typing import Any as _Any


def _member() -> _Any:
    processes = _sys.modules.get("primax_distributed.processes")
    return None if processes is None else processes.member()


class Client:
    """The key-value store and the barriers of a process, under the names of jaxlib."""

    def __init__(self, member: _Any) -> None:
        self._member = member

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        """Store a value."""
        self._member.set(key, value, overwrite=allow_overwrite)

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        """The value of a key, once it has one."""
        return str(self._member.get(key, timeout_in_ms / 1000))

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        """The keys below a key, and their values."""
        return [*self._member.folder(key).items()]

    def key_value_delete(self, key: str) -> None:
        """Remove a key, or those below it."""
        self._member.delete(key)

    def wait_at_barrier(
        self, barrier_id: str, timeout_in_ms: int, process_ids: _Any = None
    ) -> None:
        """Wait for all processes, or for some."""
        self._member.barrier(barrier_id, timeout_in_ms / 1000, process_ids)

    def get_live_nodes(self, process_ids: _Any) -> dict[int, int]:
        """The processes that live, with a number for each."""
        return dict.fromkeys(set(self._member.alive()) & set(process_ids), 0)


class State:
    """This process among others; a single process until ``jax.distributed.initialize``."""

    service: _Any = None
    preemption_sync_manager: _Any = None

    @property
    def process_id(self) -> int:
        """Number of this process."""
        member = _member()
        return 0 if member is None else int(member.rank)

    @property
    def num_processes(self) -> int:
        """Number of processes."""
        member = _member()
        return 1 if member is None else int(member.num_processes)

    @property
    def coordinator_address(self) -> str | None:
        """Address of the coordination service, or ``None``."""
        member = _member()
        return None if member is None else str(member.address)

    @property
    def client(self) -> Client | None:
        """The key-value store and the barriers, or ``None``."""
        member = _member()
        return None if member is None else Client(member)


global_state = State()
