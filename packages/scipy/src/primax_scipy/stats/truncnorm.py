"""Normal distribution truncated to ``[a, b]``, counted in units of ``scale`` from ``loc``.

>>> from primax_scipy.stats import truncnorm
>>> round(float(truncnorm.cdf(0.0, -1.0, 1.0)), 4)
0.5
"""

from ._normals import truncnorm as _functions

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
