"""Random numbers from explicit keys: the module ``primax_numpy.random``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_numpy.random import *
