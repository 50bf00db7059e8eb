"""Beta distribution with shape parameters ``a`` and ``b``, on ``[loc, loc + scale]``.

>>> from primax_scipy.stats import beta
>>> round(float(beta.pdf(0.5, 2.0, 2.0)), 4)
1.5
"""

from ._beta_family import beta as _functions
from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("beta")
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
