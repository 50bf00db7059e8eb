"""Monomials: products of factors, which are variables and unexpanded operations."""

from __future__ import annotations

from typing import Any, Final

OPERATIONS: Final = ("floordiv", "mod", "max", "min")


class Factor:
    """A variable (``op`` is empty, ``operands`` is its name), or an operation on two
    expressions.
    """

    __slots__ = ("op", "operands", "key", "_hash")

    def __init__(self, op: str, *operands: Any):
        self.op: str = op
        self.operands: tuple[Any, ...] = operands
        keys = tuple(o if op == "" else _operand_key(o) for o in operands)
        self.key: tuple[Any, ...] = (1 if op else 0, op, *keys)
        self._hash: int = hash(self.key)

    @property
    def name(self) -> str:
        """The name of a variable."""
        return self.operands[0]

    def __eq__(self, other: object) -> bool:
        return self is other or type(other) is Factor and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if not self.op:
            return self.operands[0]
        return f"{self.op}({', '.join(map(_operand_text, self.operands))})"

    __repr__ = __str__


def _operand_text(operand: Any) -> str:
    return f"- {-operand}" if type(operand) is int and operand < 0 else str(operand)


def _operand_key(operand: Any) -> tuple[Any, ...]:
    return (operand.key,) if hasattr(operand, "key") else ((), operand)


# A product of factors with exponents, sorted; the empty one is 1.
Monomial = tuple[tuple[Factor, int], ...]
ONE: Final[Monomial] = ()


def monomial_key(m: Monomial) -> tuple[Any, ...]:
    """Sort key of terms: the degree, then the number of factors, then the factors."""
    return (sum([e for _, e in m]), len(m), tuple([(f.key, e) for f, e in m]))


def product(m: Monomial, n: Monomial) -> Monomial:
    """The product of two monomials."""
    if not m or not n:
        return m or n
    powers = dict(m)
    for factor, exponent in n:
        powers[factor] = powers.get(factor, 0) + exponent
    return tuple(sorted(powers.items(), key=lambda p: p[0].key))


def quotient(m: Monomial, n: Monomial) -> Monomial | None:
    """``m / n``, if ``n`` divides ``m``."""
    powers = dict(m)
    for factor, exponent in n:
        left = powers.get(factor, 0) - exponent
        if left < 0:
            return None
        if left:
            powers[factor] = left
        else:
            del powers[factor]
    return tuple([(f, powers[f]) for f, _ in m if f in powers])


def term_text(m: Monomial, coefficient: int) -> str:
    """A term without its sign: ``2*a^2*b``."""
    parts = [str(f) if e == 1 else f"{f}^{e}" for f, e in m]
    if coefficient != 1 or not parts:
        parts.insert(0, str(coefficient))
    return "*".join(parts)
