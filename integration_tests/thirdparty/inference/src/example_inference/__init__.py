"""A loop with an implicit derivative, and an interpreter of log-densities with handlers.

>>> import numpy as np
>>> from primax_core import grad, lax
>>> root = lambda a: fixed_point(lambda a, x: 0.5 * (x + a / x), a, 1.0)
>>> round(float(root(2.0)), 4), round(float(grad(root)(2.0)), 4)
(1.4142, 0.3536)
"""

from .fixpoint import fixed_point as fixed_point
from .fixpoint import fixpoint_p as fixpoint_p
from .families import Family as Family
from .families import normal as normal
from .sites import sample as sample
from .sites import site_p as site_p
from .handlers import condition as condition
from .handlers import log_density as log_density
from .handlers import replay as replay
from .handlers import trace as trace
