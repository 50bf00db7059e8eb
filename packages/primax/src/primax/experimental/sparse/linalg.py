"""Sparse linear algebra: the module ``primax_scipy.experimental.sparse.linalg``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.experimental.sparse.linalg import (
    lobpcg_standard as lobpcg_standard,
    spsolve as spsolve,
    spsolve_p as spsolve_p,
)
