"""The hypergeometric distribution: the module ``primax_scipy.stats.hypergeom``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.hypergeom import *
