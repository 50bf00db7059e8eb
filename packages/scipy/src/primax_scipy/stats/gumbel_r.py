"""Gumbel distribution of maxima.

>>> from primax_scipy.stats import gumbel_r
>>> round(float(gumbel_r.cdf(0.0)), 4)
0.3679
"""

from ._extremes import gumbel_r as _functions
from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("gumbel_r")
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
