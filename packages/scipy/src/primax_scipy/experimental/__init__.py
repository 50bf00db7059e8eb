"""Sparse arrays, which the reference keeps among its experiments."""

from . import sparse as sparse
