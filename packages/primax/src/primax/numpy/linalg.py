"""Linear algebra: the module ``primax_numpy.linalg``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_numpy.linalg import *
