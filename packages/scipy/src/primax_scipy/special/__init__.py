"""Special functions.

The derivative of a function defined by cases is that of the case. Real functions raise an error
for complex numbers; some support only ``float32`` and ``float64``, as their docstrings say.
"""

from ._bessel import bessel_jn as bessel_jn
from ._bessel import i0 as i0
from ._bessel import i0e as i0e
from ._bessel import i1 as i1
from ._bessel import i1e as i1e
from ._entropies import boxcox as boxcox
from ._entropies import boxcox1p as boxcox1p
from ._entropies import entr as entr
from ._entropies import expit as expit
from ._entropies import kl_div as kl_div
from ._entropies import logit as logit
from ._entropies import rel_entr as rel_entr
from ._entropies import xlog1py as xlog1py
from ._entropies import xlogy as xlogy
from ._error_functions import dawsn as dawsn
from ._error_functions import erf as erf
from ._error_functions import erfc as erfc
from ._error_functions import erfcinv as erfcinv
from ._error_functions import erfcx as erfcx
from ._error_functions import erfinv as erfinv
from ._error_functions import log_ndtr as log_ndtr
from ._error_functions import ndtr as ndtr
from ._error_functions import ndtri as ndtri
from ._error_functions import wofz as wofz
from ._gammas import beta as beta
from ._gammas import betainc as betainc
from ._gammas import betaln as betaln
from ._gammas import comb as comb
from ._gammas import digamma as digamma
from ._gammas import factorial as factorial
from ._gammas import gamma as gamma
from ._gammas import gammainc as gammainc
from ._gammas import gammaincc as gammaincc
from ._gammas import gammaln as gammaln
from ._gammas import gammasgn as gammasgn
from ._gammas import loggamma as loggamma
from ._gammas import multigammaln as multigammaln
from ._gammas import poch as poch
from ._gammas import polygamma as polygamma
from ._gammas import zeta as zeta
from ._harmonics import bernoulli as bernoulli
from ._harmonics import sph_harm_y as sph_harm_y
from ._hypergeometric import hyp1f1 as hyp1f1
from ._hypergeometric import hyp2f1 as hyp2f1
from ._integrals import exp1 as exp1
from ._integrals import expi as expi
from ._integrals import expn as expn
from ._integrals import fresnel as fresnel
from ._integrals import owens_t as owens_t
from ._integrals import sici as sici
from ._integrals import spence as spence
from ._logarithms import log_softmax as log_softmax
from primax_numpy.exponentials import logsumexp as logsumexp
from ._logarithms import softmax as softmax
