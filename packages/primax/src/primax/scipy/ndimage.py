"""Images of any rank: the module ``primax_scipy.ndimage``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.ndimage import *
