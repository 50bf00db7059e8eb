"""The skellam distribution: the module ``primax_scipy.stats.skellam``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.skellam import *
