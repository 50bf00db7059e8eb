"""Array methods and indexing come from the NumPy wheel, which is loaded when one is first used."""

from __future__ import annotations

from typing import Any

from primax_core.extend import Array, register_method

from ._wheels import wheel


class _Loading:
    """Stands for a method; loading the wheel puts the real one in its place."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        if obj is None:
            return self
        wheel("primax_numpy", "numpy")
        return getattr(obj, self.name)


_NAMES = (
    "__getitem__ __matmul__ __rmatmul__ at astype reshape transpose T mT real imag ravel flatten "
    "squeeze swapaxes dot clip sum prod max min mean var std all any argmax argmin"
).split()

for _name in _NAMES:
    if _name not in Array.__dict__:
        register_method(_name, _Loading(_name))
