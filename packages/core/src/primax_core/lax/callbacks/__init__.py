"""Callback primitives: calls of Python functions at run time."""
