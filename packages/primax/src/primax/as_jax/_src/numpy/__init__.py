"""The NumPy API; requires the NumPy wheel."""

from primax_numpy import *
