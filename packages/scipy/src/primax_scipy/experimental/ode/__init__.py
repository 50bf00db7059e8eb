"""Ordinary differential equations, under the reference's experimental name."""

from ._odeint import odeint as odeint
