"""The Gumbel distribution of maxima: the module
``primax_scipy.stats.gumbel_r``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.gumbel_r import *
