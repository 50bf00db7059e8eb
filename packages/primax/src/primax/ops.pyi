"""Reductions of segments: the module ``primax_numpy.ops``."""

from primax_numpy.ops import *
