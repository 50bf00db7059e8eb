"""The zipf (zeta) distribution: the module ``primax_scipy.stats.zipf``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.zipf import *
