"""Linear algebra of sparse matrices: a direct solver, and eigenvectors of large matrices."""

from ._lobpcg_standard import lobpcg_standard as lobpcg_standard
from ._spsolve import spsolve as spsolve, spsolve_p as spsolve_p
