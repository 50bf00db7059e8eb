"""Sparse arrays: the module ``primax_scipy.experimental.sparse``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.experimental.sparse import *
