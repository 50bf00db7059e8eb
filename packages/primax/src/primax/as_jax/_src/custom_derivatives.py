"""Functions with custom derivative rules."""

from primax.custom_derivatives import *
