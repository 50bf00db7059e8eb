"""``SymbolicScope``: dimension variables and the constraints on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..._base import source
from ..symbolic_dims import Dimension
from . import bounds, parser
from .expression import DimExpr, make, of_factor, of_terms
from .factors import ONE, Factor, Monomial, monomial_key
from .linear import Effort


class SymbolicScope:
    """Dimension variables that may be used together, and constraints on them.

    Args:
      constraints_str: strings ``"e1 >= e2"``, ``"e1 <= e2"`` or ``"e1 == e2"`` that hold for all
        shapes. The left side of ``==`` is replaced by the right side, so it must be a product:
        ``"b == 2*a"``, ``"mod(a, 2) == 0"``.

    Every variable is a size of at least 1.

    Raises:
      ValueError: if a constraint cannot be parsed or cannot hold.

    >>> scope = SymbolicScope(["a >= 8"])
    >>> scope.variable("a") >= 4
    True
    """

    def __init__(self, constraints_str: Sequence[str] = (), *, _effort: float = math.inf):
        if isinstance(constraints_str, str) or not all(isinstance(c, str) for c in constraints_str):
            raise ValueError(
                f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}"
            )
        self.constraints_str: tuple[str, ...] = tuple(constraints_str)
        self.effort: Effort = Effort(_effort)
        self.known: dict[Factor, Any] = {}
        self.replaced: dict[Monomial, tuple[int, Any]] = {}
        self.facts: list[Any] = []
        self.variable_bounds: dict[str, tuple[Any, Any]] = {}
        self.stated: list[tuple[Any, str, str]] = []  # (expression, ">=" or "==", text)
        self.avals: dict[Any, Any] = {}  # interned avals with these dimensions
        self._interned: dict[Any, DimExpr] = {}
        self._bounds: dict[DimExpr, tuple[Any, Any]] = {}
        self._location: str = source.summarize(source.capture())
        for text in self.constraints_str:
            self._constrain(text)

    def __str__(self) -> str:
        constraints = ", ".join(f"'{c}'" for c in self.constraints_str)
        return f"{id(self)} created at {self._location}" + (
            f", with {constraints}" if constraints else ""
        )

    def __repr__(self) -> str:
        return f"SymbolicScope({self})"

    # Expressions

    def variable(self, name: str) -> Any:
        """The dimension variable of a name, or its replacement by a constraint."""
        return of_factor(self, Factor("", name))

    def interned(self, ordered: tuple[tuple[Monomial, int], ...]) -> DimExpr:
        """The expression of ordered terms."""
        expr = self._interned.get(ordered)
        if expr is None:
            expr = self._interned.setdefault(ordered, make(self, ordered))
        return expr

    def rewritten(self, terms: dict[Monomial, int]) -> dict[Monomial, int]:
        """Terms after the replacements by equality constraints."""
        if not self.replaced:
            return terms
        for m in sorted(terms, key=monomial_key, reverse=True):
            rule = self.replaced.get(m)
            if rule is not None and terms[m] % rule[0] == 0:
                times = terms.pop(m) // rule[0]
                for n, c in rule[1].terms if type(rule[1]) is DimExpr else ((ONE, rule[1]),):
                    terms[n] = terms.get(n, 0) + times * c
                return self.rewritten({n: c for n, c in terms.items() if c})
        return terms

    def bounds(self, expr: Any) -> tuple[Any, Any]:
        """The tightest known lower and upper bounds of an expression."""
        known = self._bounds.get(expr)
        if known is None:
            known = bounds.bounds_of(self, expr)
            if type(expr) is not int:
                self._bounds[expr] = known
        return known

    # Constraints

    def _constrain(self, text: str) -> None:
        left, symbol, right = parser.parse_constraint(text, self)
        self._bounds.clear()
        if symbol == "==":
            self._equate(left, right, text)
            return
        difference = left - right if symbol == ">=" else right - left
        if (difference if type(difference) is int else self.bounds(difference)[1]) < 0:
            raise ValueError(f"Unsatisfiable constraint: {text}")
        self.stated.append((difference, ">=", text))
        self._learn(difference)

    def _learn(self, fact: Any) -> None:
        """Add a nonnegative expression to the known facts."""
        if type(fact) is int:
            return
        self.facts.append(fact)
        self._bounds.clear()
        for name in sorted(fact.variables()):
            variable = self.variable(name)
            if type(variable) is DimExpr:
                self.variable_bounds[name] = self.bounds(variable)
                self._bounds.clear()

    def _equate(self, left: Any, right: Any, text: str) -> None:
        difference = left - right
        low, high = self.bounds(difference)
        if low > 0 or high < 0:
            raise ValueError(f"Unsatisfiable constraint: {text}")
        if difference == 0:
            return
        if type(left) is not DimExpr or len(left.terms) != 1:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand side must be a product, "
                f"`coefficient * term`, and is '{left}': it is replaced by the right-hand side."
            )
        self.stated.append((difference, "==", text))
        self._learn(difference)
        self._learn(-difference)
        ((m, c),) = left.terms
        self.replaced[m] = (c, right)
        if c == 1 and len(m) == 1 and m[0][1] == 1:
            self.known[m[0][0]] = right
            self._equate_multiple(m[0][0], right)

    def _equate_multiple(self, factor: Factor, rest: Any) -> None:
        """If ``mod(x, y)`` is replaced, also replace ``y * floordiv(x, y)``."""
        if factor.op == "mod":
            x, y = factor.operands
            multiple = y * of_factor(self, Factor("floordiv", x, y))
            if type(multiple) is DimExpr and len(multiple.terms) == 1:
                ((m, c),) = multiple.terms
                self.replaced[m] = (c, x - rest)


def symbolic_dim_bounds(dimension: Any) -> tuple[int | float, int | float]:
    """Known lower and upper bounds of a dimension.

    They follow from the constraints of the scope; every variable is at least 1.

    Args:
      dimension: a number or a symbolic dimension.

    Returns:
      A pair of numbers; the upper bound may be ``inf``, the lower one ``-inf``.

    Comparisons of dimensions are decided by these bounds, and raise an error otherwise.

    >>> from primax_core import export
    >>> export.symbolic_dim_bounds(5)
    (5, 5)
    >>> (n,) = export.symbolic_shape("n", constraints=["n <= 10"])
    >>> export.symbolic_dim_bounds(2 * n)
    (2, 20)
    """
    if isinstance(dimension, Dimension):
        return dimension.scope.bounds(dimension)  # type: ignore[attr-defined]
    return int(dimension), int(dimension)


def same_scope(dims: Sequence[Any]) -> Mapping[str, Any] | None:
    """The scope of some dimensions; ``None`` if all are numbers."""
    return next((d.scope for d in dims if isinstance(d, Dimension)), None)  # type: ignore


__all__ = ["SymbolicScope", "of_terms", "same_scope", "symbolic_dim_bounds"]
