"""Checks of jaxprs: faults as values, the rules for the core's primitives, and ``checkify``."""
