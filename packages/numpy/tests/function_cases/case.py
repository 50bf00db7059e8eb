"""A call of a function of the NumPy layer that every check tries: one line for each in this folder.

    case("cumsum", f32(3, 4), axis=1)
    case("concatenate", [f32(2, 3), f32(4, 3)])
    case("at[...].add", f32(5), numpy=..., call=lambda m, x: x.at[1].add(2.0))

A case names types, not values: the checks draw the values, in float64 where they compare
derivatives with differences. The wheel's own tests compare with NumPy; the integration tests
compare the same cases, over all dtypes, with the reference.
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
      name: the function below the module, ``"linalg.norm"``; or what ``call`` does.
      args: :class:`Operand` s, lists of them, or values that are passed as they are.
      call: what is called instead of the function of that name: ``(module, *args, **params)``, for
        NumPy, for the reference and for Primax alike.
      numpy: NumPy's side, ``(*args, **params)``, where it has another name or signature; ``False``
        where it has nothing like it (say in a comment what is compared instead).
      order: how often the function is differentiated; 0 where its derivative is zero or undefined.
      compiled, batched: whether ``jit`` and ``vmap`` apply (not to functions of known values).
      observe: what is compared where results are not unique: ``(module, result) -> pytree``.
      tolerance: the relative error allowed, instead of the one for the dtype.
      differs: why the reference's result is another (the standard or NumPy wins).
      weakness: ``False`` where the reference's weakness is an accident.
      vary: whether the comparison with the reference is repeated for all dtypes of the operands.
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
        """A copy with some of the other attributes set."""
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
        """What the values are drawn from: the same in every process."""
        shapes = [(o.dtype.name, o.shape) for o in self.operands()]
        return f"{self.name} {shapes} {list(self.params)}"

    def on(self, module: Any) -> Callable[..., Any]:
        """The call with a module's function, of its arrays alone."""
        fun = self.call
        if fun is None:
            found = module
            for part in self.name.split("."):
                found = getattr(found, part)
            return lambda *args: found(*args, **self.params)
        return lambda *args: fun(module, *args, **self.params)

    def on_numpy(self) -> Callable[..., Any]:
        """NumPy's side of the call."""
        if callable(self.numpy):
            own = self.numpy
            return lambda *args: own(*args, **self.params)
        return self.on(np)

    def operands(self) -> list[Operand]:
        """The operands whose values are drawn, in order."""
        return [a for a in _flat(self.args) if isinstance(a, Operand)]

    def draw(self, dtype: Any = None, double: bool = False) -> tuple[Any, ...]:
        """Arguments with drawn values: operands in another dtype, or in double precision."""
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
    wanted = operand.dtype if dtype is None else np.dtype(dtype)
    floating = dtypes.issubdtype(operand.dtype, np.inexact)
    if double and floating:
        wanted = _DOUBLE["c" if operand.dtype.kind == "c" else "f"]
    if operand.make is not None:
        return np.asarray(operand.make(rng, operand.shape)).astype(wanted)
    low, high = operand.low, operand.high
    if wanted == np.bool_:
        return rng.random(operand.shape) < 0.5
    if wanted.kind == "u" or wanted.name.startswith("uint"):
        low = max(low, 0)
        high = max(high, low + 1)
    if wanted.kind in "iu" or wanted.name.startswith(("int", "uint")):
        if wanted.name in ("int1", "uint1", "int2", "uint2"):
            low, high = 0, 1
        if wanted.name in ("int4", "uint4"):
            low, high = max(low, -8), min(high, 7)
        return rng.integers(int(np.ceil(low)), int(high) + 1, operand.shape).astype(wanted)
    x = rng.uniform(low, high, operand.shape)
    if wanted.kind == "c":
        x = x + 1j * rng.uniform(low, high, operand.shape)
    return x.astype(wanted)
