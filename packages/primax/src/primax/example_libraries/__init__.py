"""Small libraries of layers and optimizers: the module ``primax_nn.example_libraries``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_nn.example_libraries import *
from . import optimizers as optimizers
from . import stax as stax
