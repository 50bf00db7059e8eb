"""Normal distribution with mean ``loc`` and standard deviation ``scale``.

Arguments broadcast together; integers become floats. Functions that use the logarithm of the scale
give NaN if ``scale`` is negative.
"""

from ._norm import (
    cdf as cdf,
    isf as isf,
    logcdf as logcdf,
    logpdf as logpdf,
    logsf as logsf,
    pdf as pdf,
    ppf as ppf,
    sf as sf,
)
