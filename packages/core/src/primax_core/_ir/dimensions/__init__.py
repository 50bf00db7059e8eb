"""Symbolic dimensions: integer expressions over dimension variables."""

from .expression import DimExpr as DimExpr, dim_as_value_p as dim_as_value_p
from .scope import SymbolicScope as SymbolicScope, symbolic_dim_bounds as symbolic_dim_bounds
