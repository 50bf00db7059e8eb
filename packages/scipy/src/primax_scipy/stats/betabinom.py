"""Beta-binomial distribution: successes in ``n`` trials whose probability is a beta variable.

>>> from primax_scipy.stats import betabinom
>>> round(float(betabinom.pmf(1, 3, 1.0, 1.0)), 4)
0.25
"""

from ._summed_counts import betabinom as _functions

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
