"""Signal processing: the module ``primax_scipy.signal``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.signal import *
from . import windows as windows
