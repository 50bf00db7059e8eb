"""Minimization: the module ``primax_scipy.optimize``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.optimize import *
