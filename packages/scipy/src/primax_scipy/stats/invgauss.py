"""Inverse Gaussian (Wald) distribution with mean ``mu * scale``.

>>> from primax_scipy.stats import invgauss
>>> round(float(invgauss.pdf(1.0, 1.0)), 4)
0.3989
"""

from ._normals import invgauss as _functions

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
