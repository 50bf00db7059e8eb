"""``jax.lib``: what libraries of earlier years look for here."""

from jaxlib import __version__ as __version__
