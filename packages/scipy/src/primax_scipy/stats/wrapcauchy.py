"""Wrapped Cauchy distribution with parameter ``c``, on ``[loc, loc + 2π scale]``.

>>> from primax_scipy.stats import wrapcauchy
>>> round(float(wrapcauchy.cdf(3.14159265, 0.5)), 4)
0.5
"""

from ._circular import wrapcauchy as _functions

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
