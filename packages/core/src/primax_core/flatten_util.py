"""Trees of arrays as vectors."""

from ._api.flattening import ravel_pytree as ravel_pytree
