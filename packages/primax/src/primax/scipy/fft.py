"""Cosine transforms: the module ``primax_scipy.fft``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_scipy.fft import *
