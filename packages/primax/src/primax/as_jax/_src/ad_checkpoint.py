"""Counterpart of the reference's private module for ``checkpoint``."""

from primax.extend.core.primitives import remat_p as remat_p
from primax_core.ad_checkpoint import *
