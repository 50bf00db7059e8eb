"""Native functions: the package ``primax_ffi``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_ffi import *
