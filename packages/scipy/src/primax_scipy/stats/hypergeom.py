"""Hypergeometric distribution: ``N`` draws from ``M`` objects, of which ``n`` count.

>>> from primax_scipy.stats import hypergeom
>>> round(float(hypergeom.pmf(1, 4, 2, 2)), 4)
0.6667
"""

from ._summed_counts import hypergeom as _functions

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
