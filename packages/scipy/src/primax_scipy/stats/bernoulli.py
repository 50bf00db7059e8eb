"""Bernoulli distribution: 1 with probability ``p``, otherwise 0.

>>> from primax_scipy.stats import bernoulli
>>> float(bernoulli.pmf(1, 0.25))
0.25
"""

from ._counts import bernoulli as _functions
from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("bernoulli")
isf = _functions.isf
logcdf = _functions.logcdf
logpmf = _functions.logpmf
logsf = _functions.logsf
mean = _functions.mean
median = _functions.median
pmf = _functions.pmf
ppf = _functions.ppf
rvs = _functions.rvs
sf = _functions.sf
std = _functions.std
var = _functions.var
