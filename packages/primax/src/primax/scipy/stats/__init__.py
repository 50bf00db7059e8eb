"""Distributions and statistics: the module ``primax_scipy.stats``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_scipy.stats import *
from . import bernoulli as bernoulli
from . import beta as beta
from . import betabinom as betabinom
from . import binom as binom
from . import cauchy as cauchy
from . import chi2 as chi2
from . import dirichlet as dirichlet
from . import expon as expon
from . import f as f
from . import gamma as gamma
from . import gennorm as gennorm
from . import geom as geom
from . import gumbel_l as gumbel_l
from . import gumbel_r as gumbel_r
from . import halfcauchy as halfcauchy
from . import halfnorm as halfnorm
from . import hypergeom as hypergeom
from . import invgamma as invgamma
from . import invgauss as invgauss
from . import laplace as laplace
from . import logistic as logistic
from . import lognorm as lognorm
from . import loguniform as loguniform
from . import multinomial as multinomial
from . import multivariate_normal as multivariate_normal
from . import nbinom as nbinom
from . import norm as norm
from . import pareto as pareto
from . import poisson as poisson
from . import rayleigh as rayleigh
from . import skellam as skellam
from . import skewnorm as skewnorm
from . import t as t
from . import triang as triang
from . import truncnorm as truncnorm
from . import uniform as uniform
from . import vonmises as vonmises
from . import weibull_max as weibull_max
from . import weibull_min as weibull_min
from . import wrapcauchy as wrapcauchy
from . import zipf as zipf
