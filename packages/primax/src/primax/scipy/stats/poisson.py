"""The Poisson distribution: the module ``primax_scipy.stats.poisson``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.stats.poisson import *
