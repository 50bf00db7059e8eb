"""Optimizers as triples of functions: the module ``primax_nn.example_libraries.optimizers``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_nn.example_libraries.optimizers import *
