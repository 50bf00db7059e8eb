"""Layers as pairs of functions: the module ``primax_nn.example_libraries.stax``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_nn.example_libraries.stax import *
