"""Optimizers as triples of functions: the module ``primax_nn.example_libraries.optimizers``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_nn.example_libraries.optimizers import *
