"""Inverse gamma distribution with shape parameter ``a``.

>>> from primax_scipy.stats import invgamma
>>> round(float(invgamma.cdf(1.0, 1.0)), 4)
0.3679
"""

from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method
from ._gamma_family import invgamma as _functions

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("invgamma")
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
