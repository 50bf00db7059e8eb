"""Inspection of running functions: breakpoints, and shardings of arrays."""

from ._debugger.breakpoint import breakpoint as breakpoint
from ._debugger.sharding_pictures import (
    ShardingPicture as ShardingPicture,
    sharding_picture as sharding_picture,
)
from ._debugger.sharding_views import (
    inspect_array_sharding as inspect_array_sharding,
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
