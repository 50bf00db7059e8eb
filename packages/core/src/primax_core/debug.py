"""Values of running functions."""

from typing import NoReturn as _NoReturn

from ._api.debugging import callback as callback, log as log, print as print
from ._base.moved_names import in_interpreters as _in_interpreters
from .lax.callbacks.debugging import (
    DebugEffect as DebugEffect,
    OrderedDebugEffect as OrderedDebugEffect,
)

_INTERPRETERS = (
    "breakpoint",
    "inspect_array_sharding",
    "visualize_array_sharding",
    "visualize_sharding",
)


def __getattr__(name: str) -> _NoReturn:
    if name in _INTERPRETERS:
        raise _in_interpreters(__name__, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
