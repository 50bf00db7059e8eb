"""Integration of samples: the module ``primax_scipy.integrate``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.integrate import *
