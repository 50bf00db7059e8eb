"""Probability distributions: densities, CDFs, their logarithms and inverses.

Arguments broadcast together; integers become floats.
"""

from . import bernoulli as bernoulli
from . import beta as beta
from . import cauchy as cauchy
from . import expon as expon
from . import gamma as gamma
from . import laplace as laplace
from . import logistic as logistic
from . import multivariate_normal as multivariate_normal
from . import norm as norm
from . import poisson as poisson
from . import t as t
from . import uniform as uniform
