"""Weibull distribution of maxima on ``(-inf, loc]`` with shape parameter ``c``.

>>> from primax_scipy.stats import weibull_max
>>> round(float(weibull_max.cdf(-1.0, 2.0)), 4)
0.3679
"""

from ._extremes import weibull_max as _functions

cdf = _functions.cdf
entropy = _functions.entropy
isf = _functions.isf
logcdf = _functions.logcdf
logpdf = _functions.logpdf
logsf = _functions.logsf
mean = _functions.mean
median = _functions.median
pdf = _functions.pdf
ppf = _functions.ppf
rvs = _functions.rvs
sf = _functions.sf
std = _functions.std
var = _functions.var
