"""Operators of arrays: ``+``, ``<``, ``abs`` and the like, with promotion and broadcasting.

An eager operator runs as one executable, which the fast path looks up by the types of the operands.
During tracing its operations become separate equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from .._base import caches
from .._base.config import state
from .._engine.jit_cache import library_function
from .._ir import dtypes
from .._runtime.array import ArrayImpl
from .._runtime.dispatch import Executable, as_operand
from .._runtime.jaxlib_versions import collect_garbage
from .._runtime.launch import explain_failure, garbage_is_due, launch
from .._trace import foreign
from .._trace.array import Array, register_method
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from . import arithmetic as ar, bitwise as bits, comparison as cmp, division, magnitude as mag
from .conversion import convert
from .elementwise import scalar_like
from .exponential import pow
from .joining import split
from .magnitude import imag, real
from .promotion import any_number, inexact, is_operand, no_bool, promoted, same_rank
from .reshaping import squeeze
from .rounding import RoundingMethod, round as round_to_integers
from .selection import select

_SEQUENCES: Final = (list, tuple, set, dict, str)
_NDARRAY: Final = np.ndarray
_OPERANDS: Final = (Array, int, float, np.ndarray, np.generic)
_SCALARS: Final = frozenset(
    (bool, int, float, np.bool_, np.float32, np.float64, np.int32, np.int64)
)
_scalars: dict[tuple, ArrayImpl] = caches.bounded_cache()


def _scalar_array(x: Any, kind: type) -> ArrayImpl:
    """The cached array of a number."""
    # The keys 0.0 and -0.0 are equal; their texts differ.
    key = (state.key, kind, x) if x else (state.key, kind, repr(x))
    array = _scalars.get(key)
    if array is None or array._buf.is_deleted():
        array = as_operand(x)
        _scalars[key] = array
    return array


def _reflects(kind: type, method: str) -> bool:
    """Return True if a subclass of a built-in class defines an operator itself."""
    return any(method in vars(c) for c in kind.__mro__ if c.__module__ != "builtins")


def _operator(
    name: str,
    symbol: str,
    reflection: str,
    general: Callable,
    equality: bool = False,
    single: bool = True,
) -> tuple[Callable, Callable]:
    """The methods of an operator and of its reflection.

    Args:
      name: name of the operator in messages and executables.
      reflection: the method of the other operand that is tried next.
      general: ``(x, y) -> array`` on operands of any type; it may be traced.
      equality: values that cannot be operands compare unequal to every array.
      single: True if there is one result.
    """
    general.__name__ = general.__qualname__ = name
    front = library_function(general)
    entries = front.jit_cache.entries if single else {}

    def slow(x, y, other):
        """Evaluate on any operands; ``other`` is the operand that need not be an array."""
        if not is_operand(other):
            kind = type(other)
            if isinstance(other, _SEQUENCES) and not (equality and kind is str):
                if _reflects(kind, reflection):
                    return NotImplemented
                raise TypeError(
                    f"unsupported operand type(s) for {symbol}: {type(x).__name__!r} and "
                    f"{type(y).__name__!r}"
                )
            if not equality:
                foreign.refuse(other, symbol)
            return NotImplemented
        if not isinstance(other, _OPERANDS) and foreign.converts_itself(other):
            x, y = (v.__jax_array__() if v is other else v for v in (x, y))
        return (front if state.trace is None else general)(x, y)

    def method(self, other):
        if state.trace is None:
            kind, y = type(other), other
            if kind in _SCALARS:
                y = _scalar_array(other, kind)
            try:
                if kind is _NDARRAY:
                    y = as_operand(other)
                entry = entries[(state.key, self._spec, y._spec)]
            except (KeyError, AttributeError, TypeError, ValueError):
                pass  # the first call with these types, or an invalid operand
            else:
                # `launch`, inlined: one call less saves 2 % of `x + x`.
                if garbage_is_due():
                    collect_garbage()
                try:
                    return entry.execute([self._buf, y._buf]).consume_with_handlers(entry.handlers)[
                        0
                    ]
                except Exception as e:
                    explain_failure(e, (self, y), name)
                    raise
        return slow(self, other, other)

    def reflected(self, other):
        if state.trace is None:
            kind, y = type(other), other
            if kind in _SCALARS:
                y = _scalar_array(other, kind)
            try:
                if kind is _NDARRAY:
                    y = as_operand(other)
                entry = entries[(state.key, y._spec, self._spec)]
            except (KeyError, AttributeError, TypeError, ValueError):
                pass
            else:
                return launch(entry, [y._buf, self._buf], (y, self), name)[0]
        return slow(other, self, other)

    return method, reflected


def _binary(name: str, compute: Callable, adjust: Callable = any_number) -> Callable:
    """A function of any two operands, from a function of operands of one dtype and rank."""

    def general(x, y):
        return compute(*same_rank(name, *promoted(name, x, y, adjust)))

    return general


def _on_bool(of_bool: Callable, of_numbers: Callable) -> Callable:
    def compute(x, y):
        return (of_bool if typeof(x).dtype == np.bool_ else of_numbers)(x, y)

    return compute


def _ordered(compare: Callable) -> Callable:
    """A comparison that orders complex numbers by real part, then by imaginary part."""

    def compute(x, y):
        if not dtypes.issubdtype(typeof(x).dtype, np.complexfloating):
            return compare(x, y)
        ties = cmp.eq(real(x), real(y))
        by_imag = compare(imag(x), imag(y))
        return select(ties, by_imag, compare(real(x), real(y)))

    return compute


def _shift_right(x, y):
    unsigned = dtypes.issubdtype(typeof(x).dtype, np.unsignedinteger)
    return (bits.shift_right_logical if unsigned else bits.shift_right_arithmetic)(x, y)


_ARITHMETIC: Final = (
    ("add", "+", "add", _on_bool(bits.bitwise_or, ar.add), any_number),
    ("subtract", "-", "sub", ar.sub, any_number),
    ("multiply", "*", "mul", _on_bool(bits.bitwise_and, ar.mul), any_number),
    ("true_divide", "/", "truediv", ar.div, inexact),
    ("floor_divide", "//", "floordiv", division.floor_divide, no_bool),
    ("remainder", "%", "mod", division.remainder, no_bool),
    ("divmod", "divmod()", "divmod", division.divided, no_bool),
    ("bitwise_and", "&", "and", bits.bitwise_and, any_number),
    ("bitwise_or", "|", "or", bits.bitwise_or, any_number),
    ("bitwise_xor", "^", "xor", bits.bitwise_xor, any_number),
    ("left_shift", "<<", "lshift", bits.shift_left, no_bool),
    ("right_shift", ">>", "rshift", _shift_right, no_bool),
)
_COMPARISONS: Final = (
    ("equal", "==", "eq", cmp.eq),
    ("not_equal", "!=", "ne", cmp.ne),
    ("less", "<", "lt", _ordered(cmp.lt)),
    ("less_equal", "<=", "le", _ordered(cmp.le)),
    ("greater", ">", "gt", _ordered(cmp.gt)),
    ("greater_equal", ">=", "ge", _ordered(cmp.ge)),
)
_MIRRORED: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


# Powers


def _power(x, y):
    """``x ** y`` with an exponent that is not a static integer."""
    a, b = typeof(x), typeof(y)
    pair = ((a.dtype, a.weak_type), (b.dtype, b.weak_type))
    dtype, _ = no_bool(*dtypes.lattice_result(pair))
    if dtypes.issubdtype(dtype, np.integer):
        x, y = promoted("power", x, y, lambda *joint: (no_bool(*joint)[0], False))
        return division.integer_power(*same_rank("power", x, y))
    x, inexact_y = promoted("power", x, y)
    if not dtypes.issubdtype(b.dtype, np.integer):
        y = inexact_y  # integers are not converted: pow has a better derivative for them
    return pow(*same_rank("power", x, y))


_power_method, _power_reflected = _operator("power", "** or pow()", "__rpow__", _power)
_power_entries: dict[tuple, Executable] = caches.bounded_cache()


def _known_integer(x: Any) -> int | None:
    """The value of a concrete integer exponent, otherwise ``None``."""
    if isinstance(x, (bool, int, np.integer)):
        return int(x)
    if isinstance(x, np.ndarray) and not x.shape and x.dtype.kind in "iu":
        return int(x)
    if isinstance(x, ArrayImpl) and not x.shape and dtypes.issubdtype(x.dtype, np.integer):
        return int(x)
    return None


def _integer_power_of(x: Any, exponent: int) -> Array:
    aval = typeof(x)
    if aval.dtype == np.bool_:
        x = convert(x, dtypes.i32)
    out = ar.integer_pow(x, exponent)
    if state.trace is None and isinstance(x, ArrayImpl):
        exe = ar.integer_pow_p.executables.get((state.key, (("y", exponent),), x._spec))
        if exe is not None and exe.plain:
            _power_entries[(state.key, x._spec, exponent)] = exe
    return out


def __pow__(self: Any, other: Any) -> Any:
    if type(other) is int and state.trace is None:
        try:
            entry = _power_entries[(state.key, self._spec, other)]
        except (KeyError, AttributeError):
            pass
        else:
            return launch(entry, [self._buf], (self,), "integer_pow")[0]
    exponent = _known_integer(other)
    if exponent is not None:
        return _integer_power_of(self, exponent)
    return _power_method(self, other)


def __rpow__(self: Array, other: Any) -> Any:
    if is_operand(other):
        exponent = _known_integer(self)
        if exponent is not None:
            return _integer_power_of(other, exponent)
    return _power_reflected(self, other)


# Operators of one operand


def __neg__(self: Array) -> Array:
    return ar.neg(self)


def __pos__(self: Array) -> Array:
    return self


def __abs__(self: Array) -> Array:
    dtype = self.aval.dtype
    if dtype == np.bool_ or dtypes.issubdtype(dtype, np.unsignedinteger):
        return self
    return mag.abs(self)


def __invert__(self: Array) -> Array:
    return bits.bitwise_not(self)


def __round__(self: Array, ndigits: int | None = None) -> Array:
    rounded = rounded_to(self, 0 if ndigits is None else ndigits)
    return convert(rounded, dtypes.default_int()) if ndigits is None else rounded


def rounded_to(x: ArrayLike, decimals: int) -> Array:
    """Elements rounded to a number of decimals; halves are rounded to even.

    Raises:
      ValueError: for booleans.
      NotImplementedError: for integers and negative ``decimals``.
    """
    dtype = typeof(x).dtype
    if dtype == np.bool_:
        raise ValueError(
            "data type dtype('bool') not compatible with finfo: booleans have no decimals"
        )
    if dtypes.issubdtype(dtype, np.integer):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return x
    return _round(x, decimals=decimals)


def _round_floats(x, *, decimals):
    dtype = typeof(x).dtype
    if dtypes.issubdtype(dtype, np.complexfloating):
        return mag.complex(
            _round_floats(real(x), decimals=decimals), _round_floats(imag(x), decimals=decimals)
        )
    if not decimals:
        return round_to_integers(x, RoundingMethod.TO_NEAREST_EVEN)
    weak_type = typeof(x).weak_type
    if dtype == dtypes.f16:  # the product with a power of 10 can overflow
        x = convert(x, dtypes.f32, weak_type)
    factor = scalar_like(x, 10.0**decimals)
    nearest = round_to_integers(ar.mul(x, factor), RoundingMethod.TO_NEAREST_EVEN)
    return convert(ar.div(nearest, factor), dtype, weak_type)


_round = library_function(_round_floats, static_argnames=("decimals",), name="round")


# Rows


@library_function
def _rows(x):
    return [squeeze(row, (0,)) for row in split(x, (1,) * typeof(x).shape[0])]


def _chunks_of(x, *, size):
    n = typeof(x).shape[0]
    sizes = [min(size, n - start) for start in range(0, n, size)]
    return split(x, tuple(sizes))


_chunks = library_function(_chunks_of, static_argnames=("size",), name="chunks")
_ROWS_AT_ONCE: Final = 100


def __iter__(self: Array) -> Iterator[Array]:
    if not self.aval.shape:
        raise TypeError("iteration over a 0-d array")
    return _iterate(self)


def _iterate(x):
    n = x.aval.shape[0]
    if n > _ROWS_AT_ONCE:
        for chunk in _chunks(x, size=_ROWS_AT_ONCE):
            yield from _rows(chunk)
    elif n:
        yield from _rows(x)


def _register() -> None:
    for name, symbol, method, compute, adjust in _ARITHMETIC:
        general = _binary(name, compute, adjust)
        reflection = f"__r{method}__"
        forward, backward = _operator(name, symbol, reflection, general, single=name != "divmod")
        register_method(f"__{method}__", forward)
        register_method(reflection, backward)
    for name, symbol, method, compute in _COMPARISONS:
        equality = method in ("eq", "ne")
        reflection = f"__{_MIRRORED.get(method, method)}__"
        forward, _ = _operator(name, symbol, reflection, _binary(name, compute), equality)
        register_method(f"__{method}__", forward)
    for method in (__pow__, __rpow__, __neg__, __pos__, __abs__, __invert__, __round__, __iter__):
        register_method(method.__name__, method)


_register()
