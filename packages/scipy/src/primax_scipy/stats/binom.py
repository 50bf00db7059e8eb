"""Binomial distribution: successes in ``n`` trials with probability ``p``.

>>> from primax_scipy.stats import binom
>>> round(float(binom.pmf(1, 2, 0.5)), 4)
0.5
"""

from ._counts import binom as _functions
from ._fitting import FitMethod as _FitMethod, fit_method as _fit_method

cdf = _functions.cdf
entropy = _functions.entropy
fit: _FitMethod = _fit_method("binom")
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
