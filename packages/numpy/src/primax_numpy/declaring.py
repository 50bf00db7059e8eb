"""Function declaration and argument checks for dependent packages.

:func:`compiled` and :func:`elementwise` compile each public function into one executable;
``check_arrays`` and ``axes_of`` validate arguments with uniform error messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import cast, dtypes, inexact
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import axes_of as axes_of, check_arrays as check_arrays, one_axis as one_axis
from ._functions import compiled as compiled, elementwise as elementwise


def is_complex(x: ArrayLike) -> bool:
    """True if the dtype is complex."""
    return bool(dtypes.issubdtype(typeof(x).dtype, np.complexfloating))


def as_inexact(x: ArrayLike) -> Any:
    """The operand, with integers and booleans converted to floats."""
    aval = typeof(x)
    dtype, weak = inexact(aval.dtype, aval.weak_type)
    return x if dtype == aval.dtype else cast(x, aval, dtype, weak)


def strong(x: ArrayLike) -> Any:
    """The operand as strongly typed inexact values."""
    x = as_inexact(x)
    aval = typeof(x)
    return cast(x, aval, aval.dtype, False) if aval.weak_type else x


def check_not_bool(name: str, x: ArrayLike) -> None:
    """Raise TypeError for booleans."""
    if typeof(x).dtype == np.bool_:
        raise TypeError(f"{name} does not accept dtype bool: convert with x.astype(float).")
