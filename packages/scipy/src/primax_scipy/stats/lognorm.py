"""Lognormal distribution: the logarithm of ``x / scale`` is normal with standard deviation ``s``.

>>> from primax_scipy.stats import lognorm
>>> round(float(lognorm.cdf(1.0, 0.5)), 4)
0.5
"""

from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method
from ._normals import lognorm as _functions

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("lognorm")
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
