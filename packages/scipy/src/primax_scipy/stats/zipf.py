"""Zipf (zeta) distribution: probability proportional to ``k^-a``.

>>> from primax_scipy.stats import zipf
>>> round(float(zipf.pmf(1, 2.0)), 4)
0.6079
"""

from ._counts import zipf as _functions

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
