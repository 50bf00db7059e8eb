"""The Weibull distribution of maxima: the module
``primax_scipy.stats.weibull_max``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.weibull_max import *
