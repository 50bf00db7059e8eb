"""Layers as pairs of functions: the module ``primax_nn.example_libraries.stax``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_nn.example_libraries.stax import *
