"""Ordinary differential equations: the module ``primax_scipy.experimental.ode``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.experimental.ode import *
