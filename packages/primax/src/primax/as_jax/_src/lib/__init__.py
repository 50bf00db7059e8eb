"""Names that libraries import from jax's private bindings of jaxlib."""
