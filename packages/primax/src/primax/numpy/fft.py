"""Discrete Fourier transforms: the module ``primax_numpy.fft``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_numpy.fft import *
