"""The normal distribution of vectors: the module ``primax_scipy.stats.multivariate_normal``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.stats.multivariate_normal import *
