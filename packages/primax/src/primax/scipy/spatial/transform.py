"""Rotations: the module ``primax_scipy.spatial.transform``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.spatial.transform import *
