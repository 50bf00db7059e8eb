"""Test cases: calls of functions of the NumPy layer, one line for each in this folder.

    case("cumsum", f32(3, 4), axis=1)
    case("concatenate", [f32(2, 3), f32(4, 3)])
    case("at[...].add", f32(5), numpy=..., call=lambda m, x: x.at[1].add(2.0))

A case specifies types, not values: the checks draw the values, in float64 for finite differences.
  The tests of the wheel compare with NumPy; the integration tests compare the same cases, over all
  dtypes, with the reference.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core.extend import Operand, dtypes


class Case:
    """One call: ``call(module, *args, **params)``.

    Attributes:
      name: the function relative to the module, ``"linalg.norm"``; or a name of ``call``.
      args: :class:`Operand` s, lists of them, or values that are passed unchanged.
      call: replaces the function of that name: ``(module, *args, **params)``, for NumPy, the
        reference and Primax.
      numpy: the NumPy function, ``(*args, **params)``, if it has another name or signature;
        ``False`` if there is none (a comment explains the comparison).
      order: the highest order of tested derivatives; 0 if the derivative is zero or undefined.
      compiled, batched: whether ``jit`` and ``vmap`` apply (not to functions of concrete values).
      observe: the compared quantity if results are not unique: ``(module, result) -> pytree``.
      tolerance: the relative error allowed, instead of the one for the dtype.
      differs: the reason if the reference differs (the standard or NumPy takes precedence).
      weakness: ``False`` if the weak type of the reference is accidental.
      vary: repeat the comparison with the reference for all dtypes of the operands.
    """

    def __init__(self, name: str, args: tuple[Any, ...], params: dict[str, Any]):
        self.name = name
        self.args = args
        self.params = params
        self.call: Callable[..., Any] | None = None
        self.numpy: Callable[..., Any] | bool | None = None
        self.order = 2
        self.compiled = True
        self.batched = True
        self.observe: Callable[..., Any] | None = None
        self.tolerance: float | None = None
        self.differs = ""
        self.weakness = True
        self.vary = True

    def set(self, **options: Any) -> Case:
        """A copy with other attributes replaced."""
        new = copy.copy(self)
        for name, value in options.items():
            if not hasattr(self, name):
                raise TypeError(f"a case has no option {name}")
            setattr(new, name, value)
        return new

    def __repr__(self) -> str:
        parts = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.params.items())]
        return f"{self.name}({', '.join(parts)})"

    @property
    def seed(self) -> str:
        """Seed of the values: the same in every process."""
        shapes = [(o.dtype.name, o.shape) for o in self.operands()]
        return f"{self.name} {shapes} {list(self.params)}"

    def on(self, module: Any) -> Callable[..., Any]:
        """The call with the function of a module, as a function of its arrays."""
        fun = self.call
        if fun is None:
            target = module
            for part in self.name.split("."):
                target = getattr(target, part)
            return lambda *args: target(*args, **self.params)
        return lambda *args: fun(module, *args, **self.params)

    def on_numpy(self) -> Callable[..., Any]:
        """The NumPy version of the call."""
        if callable(self.numpy):
            own = self.numpy
            return lambda *args: own(*args, **self.params)
        return self.on(np)

    def operands(self) -> list[Operand]:
        """The operands with drawn values, in order."""
        return [a for a in _flat(self.args) if isinstance(a, Operand)]

    def draw(self, dtype: Any = None, double: bool = False) -> tuple[Any, ...]:
        """Arguments with drawn values, optionally in another dtype or in double precision."""
        rng = np.random.default_rng(zlib.crc32(self.seed.encode()))

        def drawn(a: Any) -> Any:
            if isinstance(a, (list, tuple)):
                return type(a)([drawn(x) for x in a])
            return _values(a, rng, dtype, double) if isinstance(a, Operand) else a

        return tuple([drawn(a) for a in self.args])


def case(name: str, *args: Any, **params: Any) -> Case:
    """A case with its arguments; see :class:`Case`."""
    return Case(name, args, params)


def _flat(a: Any) -> list[Any]:
    return [y for x in a for y in _flat(x)] if isinstance(a, (list, tuple)) else [a]


_DOUBLE = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def _values(operand: Operand, rng: np.random.Generator, dtype: Any, double: bool) -> np.ndarray:
    target_dtype = operand.dtype if dtype is None else np.dtype(dtype)
    floating = dtypes.issubdtype(operand.dtype, np.inexact)
    if double and floating:
        target_dtype = _DOUBLE["c" if operand.dtype.kind == "c" else "f"]
    if operand.make is not None:
        return np.asarray(operand.make(rng, operand.shape)).astype(target_dtype)
    low, high = operand.low, operand.high
    if target_dtype == np.bool_:
        return rng.random(operand.shape) < 0.5
    if target_dtype.kind == "u" or target_dtype.name.startswith("uint"):
        low = max(low, 0)
        high = max(high, low + 1)
    if target_dtype.kind in "iu" or target_dtype.name.startswith(("int", "uint")):
        if target_dtype.name in ("int1", "uint1", "int2", "uint2"):
            low, high = 0, 1
        if target_dtype.name in ("int4", "uint4"):
            low, high = max(low, -8), min(high, 7)
        return rng.integers(int(np.ceil(low)), int(high) + 1, operand.shape).astype(target_dtype)
    x = rng.uniform(low, high, operand.shape)
    if target_dtype.kind == "c":
        x = x + 1j * rng.uniform(low, high, operand.shape)
    return x.astype(target_dtype)
