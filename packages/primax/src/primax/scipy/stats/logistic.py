"""The logistic distribution: the module ``primax_scipy.stats.logistic``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.stats.logistic import *
