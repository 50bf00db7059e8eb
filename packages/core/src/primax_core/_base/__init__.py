"""Pytrees, configuration, errors and source information: the lowest layer."""
