"""Inspection of running functions: values, and shardings of arrays."""

from ._api.breakpoint import breakpoint as breakpoint
from ._api.debugging import callback as callback, log as log, print as print
from ._api.sharding_views import (
    inspect_array_sharding as inspect_array_sharding,
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
from .lax.callbacks.debugging import (
    DebugEffect as DebugEffect,
    OrderedDebugEffect as OrderedDebugEffect,
)
