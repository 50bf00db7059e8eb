"""Weight initializers: the module ``primax_nn.initializers``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_nn.initializers import *
