"""Distances and rotations."""

from . import distance as distance
from . import transform as transform
