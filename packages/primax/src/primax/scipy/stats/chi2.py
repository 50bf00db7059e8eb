"""The chi-squared distribution: the module
``primax_scipy.stats.chi2``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.chi2 import *
