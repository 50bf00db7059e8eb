"""Bernoulli distribution: 1 with probability ``p``, otherwise 0."""

from ._bernoulli import cdf as cdf, logpmf as logpmf, pmf as pmf, ppf as ppf
