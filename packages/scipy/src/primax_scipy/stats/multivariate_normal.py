"""Multivariate normal distribution with mean ``mean`` and covariance ``cov``."""

from ._multivariate_normal import logpdf as logpdf, pdf as pdf
