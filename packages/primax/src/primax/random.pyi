"""Random numbers from explicit keys: the module ``primax_numpy.random``."""

from primax_numpy.random import *
