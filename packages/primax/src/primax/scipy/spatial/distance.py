"""Distances: the module ``primax_scipy.spatial.distance``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.spatial.distance import *
