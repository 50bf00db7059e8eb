"""Distances and rotations: the module ``primax_scipy.spatial``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.spatial import *
from . import distance as distance
from . import transform as transform
