"""NumPy functions on traceable arrays: the module ``primax_numpy``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_numpy import *
from . import fft as fft
from . import linalg as linalg
