"""Sparse linear algebra: the module ``primax_scipy.sparse``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.sparse import *
from . import linalg as linalg
