"""Conversion of trees of arrays to vectors."""

from ._api.flattening import ravel_pytree as ravel_pytree
