"""Gamma distribution with shape parameter ``a``."""

from ._gamma import (
    cdf as cdf,
    logcdf as logcdf,
    logpdf as logpdf,
    logsf as logsf,
    pdf as pdf,
    sf as sf,
)
