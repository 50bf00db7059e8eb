"""Shardings."""

import inspect as _inspect

from primax_core import jit as _jit
from primax_core.extend import SingleDeviceSharding as SingleDeviceSharding

UNSPECIFIED = _inspect.signature(_jit).parameters["in_shardings"].default
UnspecifiedValue = type(UNSPECIFIED)
