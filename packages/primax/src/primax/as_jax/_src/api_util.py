"""Utilities for the arguments of transformations."""

from primax.api_util import *
from primax.api_util import debug_info as debug_info
