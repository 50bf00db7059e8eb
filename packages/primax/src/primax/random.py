"""Random numbers from explicit keys: the module ``primax_numpy.random``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._wheels import wheel

_random = wheel("primax_numpy.random", "numpy")
globals().update({k: v for k, v in vars(_random).items() if not k.startswith("_")})
__all__ = [k for k in vars(_random) if not k.startswith("_")]

if TYPE_CHECKING:
    from primax_numpy.random import *  # noqa: F403
