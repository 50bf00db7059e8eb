"""The skew normal distribution: the module
``primax_scipy.stats.skewnorm``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.skewnorm import *
