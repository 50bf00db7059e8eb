"""Laplace distribution (two-sided exponential).

>>> from primax_scipy.stats import laplace
>>> float(laplace.pdf(0.0))
0.5
"""

from ._exponentials import laplace as _functions
from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("laplace")
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
