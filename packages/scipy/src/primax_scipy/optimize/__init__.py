"""Minimization."""

from ._minimize import OptimizeResults as OptimizeResults
from ._minimize import minimize as minimize
