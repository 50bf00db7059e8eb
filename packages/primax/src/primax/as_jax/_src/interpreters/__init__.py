"""Counterparts of the reference's private interpreter modules: the public ones."""
