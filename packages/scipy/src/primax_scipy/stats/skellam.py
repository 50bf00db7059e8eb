"""Skellam distribution: the difference of Poisson variables of means ``mu1`` and ``mu2``.

>>> from primax_scipy.stats import skellam
>>> round(float(skellam.pmf(0, 1.0, 1.0)), 4)
0.3085
"""

from ._summed_counts import skellam as _functions

cdf = _functions.cdf
entropy = _functions.entropy
isf = _functions.isf
logcdf = _functions.logcdf
logpmf = _functions.logpmf
logsf = _functions.logsf
mean = _functions.mean
median = _functions.median
pmf = _functions.pmf
ppf = _functions.ppf
rvs = _functions.rvs
sf = _functions.sf
std = _functions.std
var = _functions.var
