"""Errors of compiled functions as values: the module ``primax_interpreters.checkify``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_interpreters.checkify import *
