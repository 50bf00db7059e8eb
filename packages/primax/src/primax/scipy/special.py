"""Special functions: the module ``primax_scipy.special``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.special import *
