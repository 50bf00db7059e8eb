"""Random numbers; needs the NumPy wheel."""

from primax_numpy.random import *
