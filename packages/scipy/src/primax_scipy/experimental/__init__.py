"""Sparse arrays, which are experimental in the reference."""

from . import sparse as sparse
