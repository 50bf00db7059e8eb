"""F distribution with ``dfn`` and ``dfd`` degrees of freedom.

>>> from primax_scipy.stats import f
>>> round(float(f.cdf(1.0, 5.0, 5.0)), 4)
0.5
"""

from ._beta_family import f as _functions

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
