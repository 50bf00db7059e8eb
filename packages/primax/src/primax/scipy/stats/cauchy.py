"""The Cauchy distribution: the module ``primax_scipy.stats.cauchy``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.cauchy import *
