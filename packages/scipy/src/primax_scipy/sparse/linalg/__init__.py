"""Matrix-free iterative solvers of linear systems."""

from ._minres import minres as minres
from ._solvers import bicgstab as bicgstab
from ._solvers import cg as cg
from ._solvers import gmres as gmres
