"""Rotations in three dimensions, and interpolation between them."""

from ._rotation import Rotation as Rotation
from ._slerp import Slerp as Slerp
