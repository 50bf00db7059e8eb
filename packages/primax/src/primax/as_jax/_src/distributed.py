"""State of multi-process computations; there is one process."""

from typing import Any as _Any


class State:
    """State of the processes of a computation: a single process."""

    process_id: int = 0
    num_processes: int = 1
    service: _Any = None
    client: _Any = None
    preemption_sync_manager: _Any = None
    coordinator_address: str | None = None


global_state = State()
