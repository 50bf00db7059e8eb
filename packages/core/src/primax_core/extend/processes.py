"""Several processes: the coordination service, its members, and clients over all processes."""

from .._lower import carried as _carried  # noqa: F401  (keeps executables of survivors)
from .._runtime.process_abort import abort_collectives as abort_collectives
from .._runtime.process_connections import connect_devices as connect_devices
from .._runtime.processes import (
    BarrierTimeoutError as BarrierTimeoutError,
    LeftGenerationError as LeftGenerationError,
    Member as Member,
    Service as Service,
    SharedProgram as SharedProgram,
    explain_failures as explain_failures,
    forget as forget,
    join as join,
    on_forget as on_forget,
    watch_runs as watch_runs,
)
