"""``jax.lib``: names that older libraries import from here."""

from importlib.metadata import version

__version__: str = version("jaxlib")
