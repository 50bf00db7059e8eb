"""The normal distribution truncated to ``[a: the module
``primax_scipy.stats.truncnorm``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.truncnorm import *
