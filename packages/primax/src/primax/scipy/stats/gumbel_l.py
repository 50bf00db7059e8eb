"""The Gumbel distribution of minima: the module
``primax_scipy.stats.gumbel_l``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.gumbel_l import *
