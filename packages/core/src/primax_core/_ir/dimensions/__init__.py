"""Symbolic dimensions: integer expressions over variables that stand for sizes."""

from .expression import DimExpr as DimExpr, install_values as install_values
from .scope import SymbolicScope as SymbolicScope, symbolic_dim_bounds as symbolic_dim_bounds
