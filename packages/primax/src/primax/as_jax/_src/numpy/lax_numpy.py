"""The NumPy API; needs the NumPy wheel."""

from primax_numpy import *
