"""Chi-squared distribution with ``df`` degrees of freedom.

>>> from primax_scipy.stats import chi2
>>> round(float(chi2.sf(3.84146, 1.0)), 4)
0.05
"""

from ._gamma_family import chi2 as _functions

cdf = _functions.cdf
entropy = _functions.entropy
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
