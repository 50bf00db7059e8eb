"""Sparse linear algebra: matrix-free solvers."""

from . import linalg as linalg
