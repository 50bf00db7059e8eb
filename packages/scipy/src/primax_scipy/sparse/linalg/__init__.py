"""Iterative solvers of linear equations, by products with a matrix."""

from ._solvers import bicgstab as bicgstab
from ._solvers import cg as cg
from ._solvers import gmres as gmres
