"""Fourier, cosine and sine transforms: the module ``primax_scipy.fft``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.fft import *
