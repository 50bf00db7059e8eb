"""The inverse Gaussian (Wald) distribution: the module
``primax_scipy.stats.invgauss``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.invgauss import *
