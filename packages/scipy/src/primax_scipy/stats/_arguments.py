"""What distributions share: their operands, and how their functions are declared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from primax_core import lax
from primax_core.extend import library_function, typeof
from primax_numpy.declaring import check_arrays

from .._functions import floats

_F = TypeVar("_F", bound=Callable[..., Any])


def distribution_function(fun: _F) -> _F:
    """Make a function of arrays one compiled call; other arguments are refused in its name."""
    check = partial(check_arrays, f"{fun.__module__.rpartition('.')[2]}.{fun.__name__}")
    front: Any = library_function(fun, check=check)
    return front


def together(name: str, *xs: Any) -> list[Any]:
    """Operands in one floating-point dtype and shape."""
    xs = tuple(floats(name, *xs))
    shape = lax.broadcast_shapes(*[typeof(x).shape for x in xs])
    return [_repeated(x, shape) for x in xs]


def _repeated(x: Any, shape: tuple[int, ...]) -> Any:
    found = typeof(x).shape
    if found == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(found), len(shape))))


def inside(condition: Any, value: Any, x: Any, outside: float = -np.inf) -> Any:
    """Values where the condition on ``x`` holds, a number elsewhere, NaN where ``x`` is NaN."""
    found = lax.select(condition, value, lax.full_like(value, outside))
    return lax.select(x == x, found, lax.full_like(value, np.nan))
