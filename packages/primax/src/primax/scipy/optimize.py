"""Minimization: the module ``primax_scipy.optimize``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.optimize import *
