"""Uniform distribution on ``[loc, loc + scale]``."""

from ._uniform import cdf as cdf, logpdf as logpdf, pdf as pdf, ppf as ppf
