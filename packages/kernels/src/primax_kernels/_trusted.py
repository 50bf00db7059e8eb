"""Jaxprs with primitives of this package keep their links in the cache on disk.

The package imports this module before those with rules.
"""

from primax_core.extend.lowering import trusted_rules

assert __package__ is not None
trusted_rules(__package__)
