"""``checkpoint``, its policies and the names for them."""

from ._api.checkpoint import (
    checkpoint as checkpoint,
    checkpoint_name as checkpoint_name,
    checkpoint_policies as checkpoint_policies,
    print_saved_residuals as print_saved_residuals,
    remat as remat,
    saved_residuals as saved_residuals,
)
from ._engine.remat import (
    Offloadable as Offloadable,
    Recompute as Recompute,
    Saveable as Saveable,
    name_p as name_p,
)

checkpoint_name_fwd = checkpoint_name
