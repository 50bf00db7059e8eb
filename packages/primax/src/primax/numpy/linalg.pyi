"""Linear algebra: the module ``primax_numpy.linalg``."""

from primax_numpy.linalg import *
