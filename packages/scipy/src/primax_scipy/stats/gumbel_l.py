"""Gumbel distribution of minima.

>>> from primax_scipy.stats import gumbel_l
>>> round(float(gumbel_l.sf(0.0)), 4)
0.3679
"""

from ._extremes import gumbel_l as _functions
from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("gumbel_l")
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
