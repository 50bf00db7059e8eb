"""How values of Python classes become operands, in the reference's convention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from primax_core.extend import Array, as_operand


class CanonicalizeHandlers(dict[type, Callable[..., Any]]):
    """The classes whose values may be operands, with the function that makes them arrays.

    Nothing can be put in: a class of one's own says what array it stands for with a method
    ``__jax_array__``.
    """

    def __init__(self) -> None:
        kinds = (bool, int, float, complex, np.ndarray, np.generic, Array)
        super().__init__(dict.fromkeys(kinds, as_operand))

    def __setitem__(self, key: type, value: Callable[..., Any]) -> NoReturn:
        raise NotImplementedError(
            f"to let values of {getattr(key, '__name__', key)} be operands, give the class a "
            "method __jax_array__ that returns the array that a value stands for"
        )
