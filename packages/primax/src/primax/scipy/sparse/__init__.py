"""Sparse linear algebra: the module ``primax_scipy.sparse``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.sparse import *
from . import linalg as linalg
