"""Skew normal distribution with shape parameter ``a``.

>>> from primax_scipy.stats import skewnorm
>>> round(float(skewnorm.cdf(0.0, 1.0)), 4)
0.25
"""

from ._skew_normal import skewnorm as _functions

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
