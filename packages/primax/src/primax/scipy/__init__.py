"""SciPy functions: the module ``primax_scipy``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy import *
from . import cluster as cluster
from . import fft as fft
from . import integrate as integrate
from . import interpolate as interpolate
from . import linalg as linalg
from . import ndimage as ndimage
from . import optimize as optimize
from . import signal as signal
from . import sparse as sparse
from . import spatial as spatial
from . import special as special
from . import stats as stats
