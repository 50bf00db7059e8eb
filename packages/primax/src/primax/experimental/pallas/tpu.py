"""Kernels over blocks of arrays: the module ``primax_kernels.tpu``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_kernels.tpu import *
