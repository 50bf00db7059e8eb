"""SciPy functions: the module ``primax_scipy``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy import *
from . import fft as fft
from . import integrate as integrate
from . import linalg as linalg
from . import optimize as optimize
from . import sparse as sparse
from . import special as special
from . import stats as stats
