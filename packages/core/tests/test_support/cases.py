"""Test cases: tables of calls, one line for each.

    case("cumsum", f32(3, 4), axis=1)
    case("concatenate", [f32(2, 3), f32(4, 3)])
    case("softplus", f32(3)).set(expected=lambda x: np.log1p(np.exp(x)), order=1)

A case specifies the types of its operands, not their values: the checks draw the values, in float64
for finite differences. The tests of a wheel compare with NumPy, SciPy or a formula; the integration
tests compare the same cases with the reference.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from primax_core.extend import Operand, dtypes


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """One call: ``module.name(*args, **params)``.

    Attributes:
      name: the function relative to the module, ``"linalg.norm"``; or a name of ``call``.
      args: :class:`Operand` s, lists of them, or values that are passed unchanged.
      call: replaces the function of that name: ``(module, *args, **params)``, for the oracle, the
        reference and Primax.
      expected: the oracle, ``(*args, **params)``, if it is not the oracle's function of that name;
        ``False`` if there is none (a comment explains the comparison).
      order: the highest order of tested derivatives; 0 if the derivative is zero or undefined.
      by: positions of the differentiated arguments, by default of all inexact operands.
      compiled, batched: whether ``jit`` and ``vmap`` apply (not to functions of concrete values).
      observe: the compared quantity if results are not unique: ``(module, result) -> pytree``.
      tolerance: the relative error allowed, instead of the one for the dtype.
      ulps: the relative error allowed in units of the dtype's precision.
      seed: the text that selects the drawn values, by default made of the name and the operands.
      differs: the reason if the reference differs (the standard or the oracle takes precedence).
      derivative_differs: the reason if the derivative of the reference differs.
      weak_type: ``False`` if the weak type of the reference is accidental.
      vary: repeat the comparison with the reference for all dtypes of the operands.
    """

    name: str
    args: tuple[Any, ...]
    params: dict[str, Any]
    call: Callable[..., Any] | None = None
    expected: Callable[..., Any] | bool | None = None
    order: int = 2
    by: tuple[int, ...] | None = None
    compiled: bool = True
    batched: bool = True
    observe: Callable[..., Any] | None = None
    tolerance: float | None = None
    ulps: float | None = None
    seed: str = ""
    differs: str = ""
    derivative_differs: str = ""
    weak_type: bool = True
    vary: bool = True

    def set(self, **options: Any) -> Case:
        """A copy with other attributes replaced."""
        return replace(self, **options)

    def __repr__(self) -> str:
        parts = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.params.items())]
        return f"{self.name}({', '.join(parts)})"

    def on(self, module: Any) -> Callable[..., Any]:
        """The call with the function of a module, as a function of its arguments."""
        fun = self.call
        if fun is None:
            target = module
            for part in self.name.split("."):
                target = getattr(target, part)
            return self._observed(module, lambda *args: target(*args, **self.params))
        return self._observed(module, lambda *args: fun(module, *args, **self.params))

    def oracle(self, module: Any = np) -> Callable[..., Any]:
        """The function of the arguments that returns the expected results."""
        own = self.expected
        if callable(own):
            return self._observed(module, lambda *args: own(*args, **self.params))
        return self.on(module)

    def _observed(self, module: Any, fun: Callable[..., Any]) -> Callable[..., Any]:
        view = self.observe
        return fun if view is None else lambda *args: view(module, fun(*args))

    def operands(self) -> list[Operand]:
        """The operands with drawn values, in order."""
        return [a for a in _flat(self.args) if isinstance(a, Operand)]

    def positions(self) -> list[int]:
        """Positions of the arguments that are operands or lists with operands."""
        return [i for i, a in enumerate(self.args) if _operands_in(a)]

    def differentiated(self) -> list[int]:
        """Positions of the differentiated arguments; none if the order is 0."""
        if not self.order:
            return []
        if self.by is not None:
            return list(self.by)
        inexact = lambda a: any(dtypes.issubdtype(o.dtype, np.inexact) for o in _operands_in(a))
        return [i for i, a in enumerate(self.args) if inexact(a)]

    def draw(
        self,
        dtype: Any = None,
        *,
        double: bool = False,
        shape: tuple[int, ...] | None = None,
        salt: int = 0,
    ) -> list[Any]:
        """Arguments with drawn values, the same in every process.

        Args:
          dtype: the dtype of all operands instead of their own.
          double: draw in double precision.
          shape: the shape of all operands instead of their own.
          salt: another number draws other values.
        """
        shapes = [(o.dtype.name, o.shape) for o in self.operands()]
        seed = self.seed or f"{self.name} {shapes} {list(self.params)}"
        rng = np.random.default_rng(zlib.crc32(seed.encode()) + salt)

        def drawn(a: Any) -> Any:
            if isinstance(a, (list, tuple)):
                return type(a)([drawn(x) for x in a])
            if not isinstance(a, Operand):
                return a
            return _values(a, rng, dtype, double, a.shape if shape is None else shape)

        return [drawn(a) for a in self.args]


def case(name: str, *args: Any, **params: Any) -> Case:
    """A case with its arguments; see :class:`Case`."""
    return Case(name, args, params)


def numbered(cases: Iterable[Case]) -> list[str]:
    """The ids of cases in a parametrized test: their numbers and names."""
    return [f"{n}-{c.name}" for n, c in enumerate(cases)]


def fixing(fun: Callable[..., Any], args: Sequence[Any], at: Sequence[int]) -> Callable[..., Any]:
    """The function of the arguments at some positions, with the others fixed."""

    def of_some(*some: Any) -> Any:
        full = list(args)
        for i, x in zip(at, some, strict=True):
            full[i] = x
        return fun(*full)

    return of_some


def _flat(a: Any) -> list[Any]:
    return [y for x in a for y in _flat(x)] if isinstance(a, (list, tuple)) else [a]


def _operands_in(a: Any) -> list[Operand]:
    return [x for x in _flat(a) if isinstance(x, Operand)]


def _values(
    operand: Operand,
    rng: np.random.Generator,
    dtype: Any,
    double: bool,
    shape: tuple[int, ...],
) -> np.ndarray:
    target_dtype = operand.dtype if dtype is None else np.dtype(dtype)
    if double and dtypes.issubdtype(operand.dtype, np.inexact):
        target_dtype = np.dtype(np.complex128 if operand.dtype.kind == "c" else np.float64)
    if operand.make is not None:
        return np.asarray(operand.make(rng, shape)).astype(target_dtype)
    low, high = operand.low, operand.high
    if target_dtype == np.bool_:
        return rng.random(shape) < 0.5
    if target_dtype.kind == "u" or target_dtype.name.startswith("uint"):
        low = max(low, 0)
        high = max(high, low + 1)
    if target_dtype.kind in "iu" or target_dtype.name.startswith(("int", "uint")):
        if target_dtype.name in ("int1", "uint1", "int2", "uint2"):
            low, high = 0, 1
        if target_dtype.name in ("int4", "uint4"):
            low, high = max(low, -8), min(high, 7)
        return rng.integers(int(np.ceil(low)), int(high) + 1, shape).astype(target_dtype)
    x = rng.uniform(low, high, shape)
    if target_dtype.kind == "c":
        x = x + 1j * rng.uniform(low, high, shape)
    return x.astype(target_dtype)
