"""Copies of the core in the sources of another package: ``python -m primax_core.vendor``.

The modules use the standard library alone, and no other module of the core imports them. The page
``docs/vendoring.md`` describes the command.
"""
