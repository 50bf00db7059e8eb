"""Conversion of Python values to operands, in the reference's convention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from primax_core.extend import Array, as_operand


class CanonicalizeHandlers(dict[type, Callable[..., Any]]):
    """Read-only mapping from operand classes to conversion functions.

    It rejects new entries: a class defines its conversion in a method ``__jax_array__``.
    """

    def __init__(self) -> None:
        kinds = (bool, int, float, complex, np.ndarray, np.generic, Array)
        super().__init__(dict.fromkeys(kinds, as_operand))

    def __setitem__(self, key: type, value: Callable[..., Any]) -> NoReturn:
        raise NotImplementedError(
            f"to use values of {getattr(key, '__name__', key)} as operands, give the class a "
            "method __jax_array__ that returns the corresponding array"
        )
