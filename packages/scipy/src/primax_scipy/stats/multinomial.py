"""Multinomial distribution: counts of ``k`` outcomes in ``n`` trials.

>>> import numpy as np
>>> round(float(pmf(np.int32([1, 1]), 2, np.float32([0.5, 0.5]))), 4)
0.5
"""

from ._vectors import multinomial_logpmf as logpmf, multinomial_pmf as pmf

__all__ = ["logpmf", "pmf"]
