"""Discrete Fourier transforms: the module ``primax_numpy.fft``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_numpy.fft import *
