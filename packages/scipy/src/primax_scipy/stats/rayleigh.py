"""Rayleigh distribution: the length of a normal vector in two dimensions.

>>> from primax_scipy.stats import rayleigh
>>> round(float(rayleigh.ppf(0.5)), 4)
1.1774
"""

from ._extremes import rayleigh as _functions
from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("rayleigh")
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
