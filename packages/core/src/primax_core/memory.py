"""Memory kinds."""

from .lax.placement import Space as Space
