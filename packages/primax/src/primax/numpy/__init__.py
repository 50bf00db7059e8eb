"""NumPy's functions on arrays that can be traced: the module ``primax_numpy``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_numpy import *
from . import fft as fft
from . import linalg as linalg
