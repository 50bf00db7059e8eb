"""Conversion of pytrees to vectors."""

from primax_core.flatten_util import ravel_pytree as ravel_pytree
