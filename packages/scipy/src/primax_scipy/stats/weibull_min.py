"""Weibull distribution on ``[loc, inf)`` with shape parameter ``c``.

>>> from primax_scipy.stats import weibull_min
>>> round(float(weibull_min.sf(1.0, 2.0)), 4)
0.3679
"""

from ._extremes import weibull_min as _functions
from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("weibull_min")
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
