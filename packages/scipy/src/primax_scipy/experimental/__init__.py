"""Modules that are experimental in the reference: sparse arrays and ODEs."""

from . import ode as ode
from . import sparse as sparse
