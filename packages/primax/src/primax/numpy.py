"""NumPy's functions on arrays that can be traced: the module ``primax_numpy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._wheels import wheel

_numpy = wheel("primax_numpy", "numpy")
globals().update({k: v for k, v in vars(_numpy).items() if not k.startswith("_")})
__all__ = [k for k in vars(_numpy) if not k.startswith("_")]

if TYPE_CHECKING:
    from primax_numpy import *  # noqa: F403
