"""Linear algebra: the module ``primax_scipy.linalg``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.linalg import *
