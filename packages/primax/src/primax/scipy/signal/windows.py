"""Window functions: the module ``primax_scipy.signal.windows``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.signal.windows import *
