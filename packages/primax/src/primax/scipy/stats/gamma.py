"""The gamma distribution: the module ``primax_scipy.stats.gamma``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.stats.gamma import *
