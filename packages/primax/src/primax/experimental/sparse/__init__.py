"""Sparse arrays: the module ``primax_scipy.experimental.sparse``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.experimental.sparse import *

from . import linalg as linalg
