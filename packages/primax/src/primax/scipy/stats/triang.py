"""The triangular distribution: the module
``primax_scipy.stats.triang``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.triang import *
