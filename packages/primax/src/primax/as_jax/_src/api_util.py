"""Handling of arguments around transformations."""

from primax.api_util import *
from primax.api_util import debug_info as debug_info
