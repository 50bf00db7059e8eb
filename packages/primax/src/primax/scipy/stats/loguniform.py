"""The log-uniform (reciprocal) distribution: the module
``primax_scipy.stats.loguniform``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.loguniform import *
