"""The multivariate normal distribution: ``primax_scipy.stats.multivariate_normal``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.multivariate_normal import *
