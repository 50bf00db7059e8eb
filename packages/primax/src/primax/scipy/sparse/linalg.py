"""Iterative solvers: the module ``primax_scipy.sparse.linalg``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.sparse.linalg import *
