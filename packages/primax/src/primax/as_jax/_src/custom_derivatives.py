"""Functions with rules of their own for derivatives."""

from primax_core.custom_derivatives import *
