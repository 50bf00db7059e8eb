"""Initial values of parameters: the module ``primax_nn.initializers``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_nn.initializers import *
