"""Exponential distribution on ``[loc, inf)``, with mean ``loc + scale``."""

from ._expon import (
    cdf as cdf,
    logcdf as logcdf,
    logpdf as logpdf,
    logsf as logsf,
    pdf as pdf,
    ppf as ppf,
    sf as sf,
)
