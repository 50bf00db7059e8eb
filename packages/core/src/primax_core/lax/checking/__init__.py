"""Checks of programs: what can go wrong in operations, and how faults leave loops and branches.

Imported by those who check (``checkify``, ``debug_nans``): it registers the rules.
"""

from . import control as control
from . import operations as operations
from .check import check_p as check_p
