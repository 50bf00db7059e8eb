"""Special functions: the module ``primax_scipy.special``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.special import *
