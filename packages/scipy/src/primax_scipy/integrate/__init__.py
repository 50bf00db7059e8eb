"""Integration of samples."""

from primax_numpy import trapezoid as trapezoid
