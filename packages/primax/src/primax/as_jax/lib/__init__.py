"""``jax.lib``: what libraries of earlier years look for here."""

from importlib.metadata import version

__version__: str = version("jaxlib")
