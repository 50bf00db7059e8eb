"""Vector quantization and k-means: the module ``primax_scipy.cluster.vq``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.cluster.vq import *
