"""Interpolation: the module ``primax_scipy.interpolate``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.interpolate import *
