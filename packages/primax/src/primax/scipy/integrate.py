"""Integration of samples: the module ``primax_scipy.integrate``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.integrate import *
