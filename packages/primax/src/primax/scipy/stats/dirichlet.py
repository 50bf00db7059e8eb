"""The Dirichlet distribution: the module ``primax_scipy.stats.dirichlet``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.dirichlet import *
