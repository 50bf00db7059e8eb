"""Discrete Fourier transforms: the module ``primax_numpy.fft``."""

from primax_numpy.fft import *
