"""Kernels over blocks of arrays: the module ``primax_kernels.triton``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_kernels.triton import *
