"""Random numbers; requires the NumPy wheel."""

from primax_numpy.random import *
