"""What functions make of their operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import any_number, dtypes, promoted, typeof


def with_float(name: str, x: Any) -> Any:
    """The operand in the dtype that it has in sums with numbers of Python: integers and booleans
    become floats whose type is weak."""
    return promoted(name, x, 0.0, any_number)[0]


def refuse_integers(name: str, x: Any) -> None:
    """Raise TypeError for integers and booleans."""
    dtype = typeof(x).dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(
            f"{name} does not accept dtype {dtype.name}: its operand must be of floats; convert "
            "with x.astype(float)."
        )
