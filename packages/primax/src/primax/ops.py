"""Segment reductions: the module ``primax_numpy.ops``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_numpy.ops import *
