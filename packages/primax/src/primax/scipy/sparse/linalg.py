"""Iterative solvers: the module ``primax_scipy.sparse.linalg``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.sparse.linalg import *
