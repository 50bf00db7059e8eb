"""Student's t distribution with ``df`` degrees of freedom."""

from ._t import logpdf as logpdf, pdf as pdf
