"""Small libraries of layers and optimizers: the module ``primax_nn.example_libraries``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_nn.example_libraries import *
from . import optimizers as optimizers
from . import stax as stax
