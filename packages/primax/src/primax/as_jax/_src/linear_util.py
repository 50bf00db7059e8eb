"""Functions wrapped in transformations."""

from primax._adapters.wrapped import EqualStore as EqualStore, Store as Store
from primax.extend.linear_util import *
