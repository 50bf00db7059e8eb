"""The Weibull distribution: the module
``primax_scipy.stats.weibull_min``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.weibull_min import *
