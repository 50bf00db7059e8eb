"""Values of running functions."""

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

__getattr__ = _missing(__name__, _INTERPRETERS)
