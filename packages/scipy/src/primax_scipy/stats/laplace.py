"""Laplace distribution (two-sided exponential)."""

from ._laplace import cdf as cdf, logpdf as logpdf, pdf as pdf
