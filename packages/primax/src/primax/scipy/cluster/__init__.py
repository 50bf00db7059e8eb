"""Clustering: the module ``primax_scipy.cluster``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.cluster import *
from . import vq as vq
