"""``DimExpr``: integer polynomials over dimension variables in normal form.

The operations include ``floordiv``, ``mod``, ``max`` and ``min``.

Expressions are interned in their scope, so equality is identity. A constant expression is an int.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from ..._base.config import state
from ..._base.errors import InconclusiveDimensionOperation
from ..._base.identity import ROOT
from ..primitive import Primitive
from ..symbolic_dims import Dimension, UnknownDimensionError
from .factors import ONE, Factor, Monomial, monomial_key, product, quotient, term_text

if TYPE_CHECKING:
    from .scope import SymbolicScope


dim_as_value_p: Final = Primitive("dim_as_value", home=f"{ROOT}.lax.dimensions")


_MOST_PRODUCTS: Final = 4096
"""The largest number of terms, before equal ones are added, that a product expands to."""


class DimExpr(Dimension):
    """A symbolic dimension.

    Sums, products, powers, ``//``, ``%`` of dimensions and integers are dimensions. With other
    numbers and with arrays a dimension behaves as an array of its value. A comparison returns a
    bool if the bounds of the variables and the constraints of the scope decide it.
    """

    __slots__ = ("terms", "scope", "key", "_hash", "__weakref__")
    __array_ufunc__ = None  # NumPy defers operations with dimensions to this class
    __array_priority__ = 200

    terms: tuple[tuple[Monomial, int], ...]
    scope: SymbolicScope
    key: tuple[Any, ...]

    # Text and hashing

    def __str__(self) -> str:
        text = ""
        for i, (m, c) in enumerate(self.terms):
            sign = ("- " if c < 0 else "") if i == 0 else (" - " if c < 0 else " + ")
            text += sign + term_text(m, abs(c))
        return text

    __repr__ = __str__

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"symbolic dimension {self} cannot be pickled: it belongs to its scope")

    def __copy__(self) -> DimExpr:
        return self

    def __deepcopy__(self, memo: Any) -> DimExpr:
        return self

    def variables(self) -> set[str]:
        """Names of the dimension variables."""
        names: set[str] = set()
        for m, _ in self.terms:
            for factor, _ in m:
                if factor.op:
                    for o in factor.operands:
                        if type(o) is DimExpr:
                            names |= o.variables()
                else:
                    names.add(factor.name)
        return names

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value of the expression for these values of its variables.

        Raises:
          UnknownDimensionError: if a variable has no value.
        """
        total = 0
        for m, c in self.terms:
            for factor, exponent in m:
                c *= _factor_value(factor, values) ** exponent
            total += c
        return total

    def extremum(self, name: str, x: Any, y: Any) -> Any:
        """``max`` or ``min``, by name, of two dimensions, one of which is this one."""
        difference = x - y
        if type(difference) is int:
            low = high = difference
        else:
            low, high = self.scope.bounds(difference)
        if low >= 0:
            return x if name == "max" else y
        if high <= 0:
            return y if name == "max" else x
        return of_factor(self.scope, Factor(name, x, y))

    def as_value(self) -> Any:
        """An array of the dimension's value, computed in the current trace."""
        return as_value(self)

    # Conversion to numbers

    def __bool__(self) -> bool:
        low, high = self.scope.bounds(self)
        if low <= 0 <= high and any(f.op == "mod" for m, _ in self.terms for f, _ in m):
            raise InconclusiveDimensionOperation(
                f"Whether '{self}' is 0 is inconclusive: it is for some values of the dimension "
                "variables and not for others. If it always is, or never, add a constraint to the "
                f'symbolic shapes: symbolic_shape(..., constraints=("{self} == 0",)).'
            )
        return True  # a size that may be 0 is treated as nonzero, as by ==

    def __index__(self) -> NoReturn:
        raise TypeError(
            f"symbolic dimension '{self}' cannot be interpreted as an integer: its value is not "
            "known while tracing. Shapes may contain it; to convert it to an array, use "
            "primax.numpy.asarray(dimension)."
        )

    def __int__(self) -> NoReturn:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant. It "
            "represents many sizes: compute with it as a dimension, or use it as an array value."
        )

    def __float__(self) -> NoReturn:
        raise TypeError(
            f"symbolic dimension '{self}' is not a number: multiply with it, or convert it with "
            "primax.numpy.asarray(dimension, float)."
        )

    def __len__(self) -> int:
        raise TypeError("object of type 'DimExpr' has no len()")

    # Arithmetic

    def __add__(self, other: Any) -> Any:
        return self._linear(other, 1, operator.add)

    def __radd__(self, other: Any) -> Any:
        return self._linear(other, 1, operator.add, reflected=True)

    def __sub__(self, other: Any) -> Any:
        return self._linear(other, -1, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        if _as_dim(other) is None:
            return self._by_value(operator.sub, other, reflected=True)
        return (-self) + other

    def __neg__(self) -> Any:
        return of_terms(self.scope, {m: -c for m, c in self.terms})

    def _linear(self, other: Any, sign: int, op: Callable, reflected: bool = False) -> Any:
        dim = _as_dim(other)
        if dim is None:
            return self._by_value(op, other, reflected)
        terms = dict(self.terms)
        for m, c in _terms(dim, self.scope):
            terms[m] = terms.get(m, 0) + sign * c
        return of_terms(self.scope, terms)

    def __mul__(self, other: Any) -> Any:
        return self._product(other)

    def __rmul__(self, other: Any) -> Any:
        return self._product(other, reflected=True)

    def _product(self, other: Any, reflected: bool = False) -> Any:
        dim = _as_dim(other)
        if dim is None:
            return self._by_value(operator.mul, other, reflected)
        terms: dict[Monomial, int] = {}
        factors = _terms(dim, self.scope)
        if len(self.terms) * len(factors) > _MOST_PRODUCTS:
            raise ValueError(
                f"a product of symbolic dimensions has too many terms: {len(self.terms)} times "
                f"{len(factors)}. Products and powers of sums are expanded; write the sum as a "
                "dimension variable of its own, with an equality constraint."
            )
        for n, d in factors:
            for m, c in self.terms:
                mn = product(m, n)
                terms[mn] = terms.get(mn, 0) + c * d
        return of_terms(self.scope, terms)

    def __pow__(self, power: Any, modulus: Any = None) -> Any:
        n = _as_dim(power)
        if type(n) is int and n < 0:
            raise ValueError(
                f"symbolic dimension '{self}' cannot be raised to the negative power {n}: use "
                "1.0 / dimension, which is an array"
            )
        if type(n) is not int or n < 0 or modulus is not None:
            return self._by_value(operator.pow, power)
        out: Any = 1
        for _ in range(n):
            out = self * out
        return out

    def __rpow__(self, base: Any) -> Any:
        return self._by_value(operator.pow, base, reflected=True)

    def __floordiv__(self, other: Any) -> Any:
        dim = _as_dim(other)
        if dim is None:
            return self._by_value(operator.floordiv, other)
        return divided(self.scope, self, dim)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        dim = _as_dim(other)
        if dim is None:
            return self._by_value(operator.floordiv, other, reflected=True)
        return divided(self.scope, dim, self)[0]

    def __mod__(self, other: Any) -> Any:
        dim = _as_dim(other)
        if dim is None:
            return self._by_value(operator.mod, other)
        return divided(self.scope, self, dim)[1]

    def __rmod__(self, other: Any) -> Any:
        dim = _as_dim(other)
        if dim is None:
            return self._by_value(operator.mod, other, reflected=True)
        return divided(self.scope, dim, self)[1]

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return self._by_value(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._by_value(operator.truediv, other, reflected=True)

    def _by_value(self, op: Callable, other: Any, reflected: bool = False) -> Any:
        """The operation on arrays of the values of the dimensions."""
        if not isinstance(other, (int, float, complex, np.generic, np.ndarray, Dimension)):
            if not hasattr(other, "aval") and getattr(other, "__jax_array__", None) is None:
                return NotImplemented
        x = as_value(self)
        y = as_value(other) if isinstance(other, Dimension) else other
        return op(y, x) if reflected else op(x, y)

    # Comparison

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if isinstance(other, (int, Dimension, np.integer)) or not hasattr(other, "aval"):
            return False  # not provably equal for all values
        return self._by_value(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        if type(equal) is bool:
            return not equal
        return self._by_value(operator.ne, other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=", operator.ge)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">", operator.gt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=", operator.le)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "<", operator.lt)

    def _compared(self, other: Any, symbol: str, op: Callable[[Any, Any], Any]) -> Any:
        dim = _as_dim(other)
        if dim is None:
            return self._by_value(op, other)
        difference = self - dim
        if type(difference) is int:
            return op(difference, 0)
        low, high = self.scope.bounds(difference)
        at_low, at_high = op(low, 0), op(high, 0)
        if at_low == at_high:
            return at_low
        raise InconclusiveDimensionOperation(undecided(self, dim, symbol, low, high))


def _as_dim(x: Any) -> Any:
    """A dimension or a Python int if ``x`` can be one; otherwise ``None``."""
    if isinstance(x, Dimension) or type(x) is int:
        return x
    return int(x) if isinstance(x, (int, np.integer)) else None


def _terms(x: Any, scope: SymbolicScope) -> tuple[tuple[Monomial, int], ...]:
    if type(x) is int:
        return ((ONE, x),) if x else ()
    check_scope(x, scope)
    return x.terms


def check_scope(x: DimExpr, scope: SymbolicScope) -> None:
    """Raise an error for a dimension of another scope.

    Raises:
      ValueError: with both scopes.
    """
    if x.scope is not scope:
        raise ValueError(
            f"Invalid mixing of symbolic scopes: dimension '{x}' belongs to scope {x.scope}, and "
            f"is used with dimensions of scope {scope}. Create all symbolic shapes of one function "
            "with the same scope (symbolic_shape(..., scope=...))."
        )


def of_terms(scope: SymbolicScope, terms: Mapping[Monomial, int]) -> Any:
    """The dimension of a sum of terms: an int, or the interned expression."""
    terms = scope.rewritten({m: c for m, c in terms.items() if c})
    if not terms:
        return 0
    if len(terms) == 1 and ONE in terms:
        return terms[ONE]
    ordered = tuple(sorted(terms.items(), key=lambda t: monomial_key(t[0]), reverse=True))
    return scope.interned(ordered)


def make(scope: SymbolicScope, ordered: tuple[tuple[Monomial, int], ...]) -> DimExpr:
    """A new expression of ordered terms; called by the scope, which interns it."""
    self = object.__new__(DimExpr)
    self.scope, self.terms = scope, ordered
    self.key = tuple([(monomial_key(m), c) for m, c in ordered])
    self._hash = hash(self.key)
    return self


def of_factor(scope: SymbolicScope, factor: Factor) -> Any:
    """The dimension of one variable or operation."""
    replacement = scope.known.get(factor)
    return of_terms(scope, {((factor, 1),): 1}) if replacement is None else replacement


def divided(scope: SymbolicScope, x: Any, y: Any) -> tuple[Any, Any]:
    """``x // y`` and ``x % y``."""
    if y == 0:
        raise ZeroDivisionError(f"symbolic dimension '{x}' divided by zero")
    whole, rest = long_division(scope, x, y)
    if type(rest) is int:
        if type(y) is int:
            return whole + rest // y, rest % y
        if rest == 0:
            return whole, 0
        low, high = scope.bounds(y)
        if 0 <= rest < low or high < rest <= 0:
            return whole, rest
        if -low <= rest < 0:
            return whole - 1, rest + y
    return of_factor(scope, Factor("floordiv", x, y)), of_factor(scope, Factor("mod", x, y))


_DIVISION_STEPS = 64


def long_division(scope: SymbolicScope, x: Any, y: Any) -> tuple[Any, Any]:
    """A quotient and a remainder with ``x == quotient * y + rest``; constants stay in the
    remainder.
    """
    lead, factor = _terms(y, scope)[0]
    whole: Any = 0
    rest: Any = 0
    left = x
    # The number of steps is limited: terms are in display order, so leads need not decrease.
    for _ in range(_DIVISION_STEPS):
        if type(left) is int:
            return whole, rest + left
        m, c = left.terms[0]
        part = None if m == ONE or c % factor else quotient(m, lead)
        if part is None:
            term = of_terms(scope, {m: c})
            rest, left = rest + term, left - term
        else:
            step = of_terms(scope, {part: c // factor})
            whole, left = whole + step, left - step * y
    return 0, x


def _factor_value(factor: Factor, values: Mapping[str, int]) -> int:
    if not factor.op:
        try:
            return values[factor.name]
        except KeyError:
            known = ", ".join(sorted(values)) or "none"
            raise UnknownDimensionError(
                f"the value of dimension variable '{factor.name}' is not known; known are: {known}"
            ) from None
    x, y = (o.evaluate(values) if type(o) is DimExpr else o for o in factor.operands)
    return OPERATION_OF_INTS[factor.op](x, y)


OPERATION_OF_INTS: dict[str, Callable[[int, int], int]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "max": max, "min": min,
}  # fmt: skip


def as_value(x: Any) -> Any:
    """The value of a symbolic dimension: an integer array of the default dtype, with weak type.

    Raises:
      UnknownDimensionError: if no function is being traced for arguments with symbolic shapes.
    """
    if state.trace is None:
        raise UnknownDimensionError(
            f"symbolic dimension '{x}' has no value here: only a function that is traced for "
            "arguments with symbolic shapes (by export, make_jaxpr or jit(f).trace) can compute "
            "with it"
        )
    return dim_as_value_p.bind(dim=x)


def undecided(x: Any, y: Any, symbol: str, low: Any, high: Any) -> str:
    """Message about an undecided comparison."""
    scope: SymbolicScope = (x if type(x) is DimExpr else y).scope
    needed = {">": f"{x} >= {y + 1}", "<": f"{x} <= {y - 1}"}.get(symbol, f"{x} {symbol} {y}")
    names = sorted((x - y).variables())
    bounds = "; ".join(f"{n} in {_interval(*scope.bounds(scope.variable(n)))}" for n in names)
    constraints = ", ".join(f"'{c}'" for c in scope.constraints_str) or "none"
    return (
        f"Symbolic dimension comparison '{x}' {symbol} '{y}' is inconclusive: it holds for some "
        "values of the dimension variables and not for others.\n"
        f"Known: '{x - y}' in {_interval(low, high)}; {bounds}; constraints of the scope: "
        f"{constraints}.\n"
        "If it always holds for the intended shapes, add a constraint to the symbolic shapes: "
        f'symbolic_shape(..., constraints=("{needed}",)).'
    )


def _interval(low: Any, high: Any) -> str:
    opening, closing = "(" if low == -math.inf else "[", ")" if high == math.inf else "]"
    return f"{opening}{low}, {high}{closing}"
