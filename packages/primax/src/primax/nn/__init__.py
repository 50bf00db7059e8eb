"""Activations, attention, normalization: the module ``primax_nn``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_nn import *
from . import initializers as initializers
