"""Dirichlet distribution of vectors of ``k`` positive parts with sum 1.

>>> import numpy as np
>>> round(float(pdf(np.float32([0.25, 0.75]), np.float32([1, 1]))), 4)
1.0
"""

from ._vectors import dirichlet_logpdf as logpdf, dirichlet_pdf as pdf

__all__ = ["logpdf", "pdf"]
