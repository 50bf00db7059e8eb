"""Linear algebra: the module ``primax_scipy.linalg``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.linalg import *
