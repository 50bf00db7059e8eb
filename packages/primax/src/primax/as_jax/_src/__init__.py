"""Counterparts of modules that are private to the reference, for libraries that import them."""
