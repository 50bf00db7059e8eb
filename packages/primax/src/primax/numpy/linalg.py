"""Linear algebra: the module ``primax_numpy.linalg``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_numpy.linalg import *
