"""Random numbers from explicit keys: the module ``primax_numpy.random``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_numpy.random import *
