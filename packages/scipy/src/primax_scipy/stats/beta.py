"""Beta distribution with shape parameters ``a`` and ``b``, on ``[loc, loc + scale]``."""

from ._beta import (
    cdf as cdf,
    logcdf as logcdf,
    logpdf as logpdf,
    logsf as logsf,
    pdf as pdf,
    sf as sf,
)
