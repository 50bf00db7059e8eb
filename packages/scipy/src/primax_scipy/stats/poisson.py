"""Poisson distribution with mean ``mu``."""

from ._poisson import cdf as cdf, entropy as entropy, logpmf as logpmf, pmf as pmf
