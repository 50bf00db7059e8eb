"""The inverse gamma distribution: the module
``primax_scipy.stats.invgamma``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats.invgamma import *
