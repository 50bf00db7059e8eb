"""NumPy's functions on arrays that can be traced: the module ``primax_numpy``."""

from primax_numpy import *
from . import fft as fft
from . import linalg as linalg
