"""Promotion and dtype checks of operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import any_number, dtypes, promoted
from primax_core.extend.elementwise import argument_type as typeof


def with_float(name: str, x: Any) -> Any:
    """The operand promoted with a Python float: integers and booleans become weakly typed
    floats."""
    return promoted(name, x, 0.0, any_number)[0]


def check_inexact(name: str, x: Any) -> None:
    """Raise TypeError for integers and booleans."""
    dtype = typeof(x).dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(
            f"{name} does not accept dtype {dtype.name}: its operand must be a float; convert "
            "with x.astype(float)."
        )
