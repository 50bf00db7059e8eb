"""The Laplace distribution: the module ``primax_scipy.stats.laplace``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.stats.laplace import *
