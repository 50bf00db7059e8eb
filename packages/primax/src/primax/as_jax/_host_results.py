"""Functions of ``jax.numpy`` that return NumPy arrays for NumPy arrays.

The reference's ``reshape`` calls the method of its argument, so that a NumPy array remains one,
also under ``jit``. Libraries test constants in this way: a condition of NumPy arrays has a value
while a function is traced.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Final

import numpy as np

_REPLACED: Final[dict[str, tuple[ModuleType, Any]]] = {}


def replace(module: ModuleType) -> None:
    """Replace the functions in the module ``jax.numpy``; a second call has no effect."""
    if "reshape" in _REPLACED:
        return
    own = module.reshape
    _REPLACED["reshape"] = module, own

    @functools.wraps(own)
    def reshape(
        a: Any, shape: Any, order: str = "C", *, copy: Any = None, out_sharding: Any = None
    ) -> Any:
        if _of_numpy(a) and out_sharding is None:
            out = a.reshape(shape, order=order)
            return out.copy() if copy else out
        return own(a, shape, order, copy=copy, out_sharding=out_sharding)

    module.reshape = reshape  # type: ignore[attr-defined]


def _of_numpy(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic)


def restore() -> None:
    """Undo :func:`replace`."""
    for name, (module, own) in _REPLACED.items():
        setattr(module, name, own)
    _REPLACED.clear()
