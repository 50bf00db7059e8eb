"""The process in a computation of several; here there is one."""

from typing import Any as _Any


class State:
    """What is known of the processes of a computation: this one is alone."""

    process_id: int = 0
    num_processes: int = 1
    service: _Any = None
    client: _Any = None
    preemption_sync_manager: _Any = None
    coordinator_address: str | None = None


global_state = State()
