"""Values of running functions, breakpoints, and views of shardings.

``callback``, ``print`` and ``log`` are those of the core; the other functions are defined by the
optional wheel of interpreters, and imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any as _Any

from primax_core.debug import (
    DebugEffect as DebugEffect,
    OrderedDebugEffect as OrderedDebugEffect,
    callback as callback,
    log as log,
    print as print,
)

from ._wheels import wheel as _wheel

if TYPE_CHECKING:
    from primax_interpreters.debugger import (
        breakpoint as breakpoint,
        inspect_array_sharding as inspect_array_sharding,
        visualize_array_sharding as visualize_array_sharding,
        visualize_sharding as visualize_sharding,
    )

_DEBUGGER = (
    "breakpoint",
    "inspect_array_sharding",
    "visualize_array_sharding",
    "visualize_sharding",
)


def __getattr__(name: str) -> _Any:
    if name not in _DEBUGGER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    debugger = _wheel("primax_interpreters.debugger", "interpreters")
    value = globals()[name] = getattr(debugger, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_DEBUGGER} - {"TYPE_CHECKING"})
