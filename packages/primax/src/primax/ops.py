"""Reductions of segments: the module ``primax_numpy.ops``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_numpy.ops import *
