"""Activations, attention, normalization: the module ``primax_nn``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_nn import *
from . import initializers as initializers
