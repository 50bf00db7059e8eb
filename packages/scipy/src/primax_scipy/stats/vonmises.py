"""Von Mises distribution with concentration ``kappa``.

>>> from primax_scipy.stats import vonmises
>>> round(float(vonmises.cdf(0.0, 2.0)), 4)
0.5
"""

from ._circular import vonmises as _functions

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
