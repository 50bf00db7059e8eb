"""Types that say how values are divided over devices, for the package that defines them."""

from .._ir.placed_types import (
    Placement as Placement,
    PlacementInference as PlacementInference,
    install_placements as install_placements,
)
from .._ir.placement import (
    Casts as Casts,
    Unplaced as Unplaced,
    is_placed as is_placed,
    unplaced as unplaced,
)
from .._trace.core import placed_like as placed_like
