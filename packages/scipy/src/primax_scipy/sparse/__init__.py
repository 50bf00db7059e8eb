"""Sparse linear algebra: solvers that need products with a matrix alone."""

from . import linalg as linalg
