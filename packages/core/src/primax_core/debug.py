"""Values of running functions."""

from collections.abc import Callable as _Callable
from typing import NoReturn as _NoReturn

from ._api.debugging import callback as callback, log as log, print as print
from ._base.moved_names import missing as _missing
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

__getattr__: _Callable[[str], _NoReturn] = _missing(__name__, _INTERPRETERS)
