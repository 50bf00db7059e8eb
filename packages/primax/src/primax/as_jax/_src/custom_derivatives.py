"""Functions with custom derivative rules."""

from primax_core.custom_derivatives import *
