"""Triangular distribution on ``[loc, loc + scale]``, with its peak at ``loc + c * scale``.

>>> from primax_scipy.stats import triang
>>> float(triang.cdf(0.5, 0.5))
0.5
"""

from ._exponentials import triang as _functions

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
