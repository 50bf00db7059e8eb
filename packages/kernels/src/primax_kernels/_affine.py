"""Index maps as affine functions of the grid's indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from primax_core.extend import Eqn, Jaxpr, expanded, interpret


@dataclass(frozen=True)
class AffineForm:
    """``sum(coefficients[d] * index[d]) + constant``."""

    coefficients: tuple[int, ...]
    constant: int

    @property
    def is_constant(self) -> bool:
        """True if the form depends on no index."""
        return not any(self.coefficients)

    @property
    def dimension(self) -> int | None:
        """The dimension ``d`` if the form is ``index[d]``."""
        if self.constant or sorted(self.coefficients)[:-1] != [0] * (len(self.coefficients) - 1):
            return None
        return self.coefficients.index(1) if max(self.coefficients) == 1 else None

    def bounds(self, grid: Sequence[int]) -> tuple[int, int]:
        """The least and the greatest value over a grid."""
        low = high = self.constant
        for c, n in zip(self.coefficients, grid):
            low += min(c * (n - 1), 0)
            high += max(c * (n - 1), 0)
        return low, high


LETTERS: Final = "ijklmnopqrstuvwxyzabcdefgh"
"""Names of the dimensions of a grid in reports."""


def as_text(form: AffineForm | None) -> str:
    """The index of a block, such as ``2*i + j``; ``"?"`` if it is not affine.

    >>> as_text(AffineForm((2, 1), 0)), as_text(AffineForm((0, 0), 3)), as_text(None)
    ('2*i + j', '3', '?')
    """
    if form is None:
        return "?"
    terms = []
    for d, c in enumerate(form.coefficients):
        letter = LETTERS[d % 26]
        if c:
            terms.append(letter if c == 1 else f"{c}*{letter}")
    if form.constant or not terms:
        terms.append(str(form.constant))
    return " + ".join(terms)


def affine_forms(jaxpr: Jaxpr, rank: int) -> tuple[AffineForm | None, ...]:
    """The results of an index map as affine functions of its first ``rank`` arguments.

    ``None`` stands for a result that is not recognised as affine, or depends on other arguments.
    """
    indices = [
        AffineForm(tuple(int(d == i) for d in range(rank)), 0) for i in range(rank)
    ]  # fmt: skip
    others = [None] * (len(jaxpr.invars) - rank)

    def constant(x: Any) -> AffineForm | None:
        try:
            return AffineForm((0,) * rank, int(x.__index__()))
        except (AttributeError, TypeError):
            return None

    def evaluate(eqn: Eqn, operands: Sequence[AffineForm | None]) -> list[AffineForm | None]:
        rule = _RULES.get(eqn.primitive.name)
        if rule is None or None in operands:
            return _inside(eqn, operands, evaluate, constant)
        return [rule(*operands)]

    return tuple(interpret(jaxpr, [*indices, *others], evaluate, constant))


def _inside(eqn: Eqn, operands: Sequence[Any], evaluate: Any, constant: Any) -> list[Any]:
    """The results of a call, by its body; unknown results for other operations."""
    if eqn.primitive.name == "jit" and None not in operands:
        body = expanded(eqn.primitive, [v.aval for v in eqn.invars], eqn.params)
        return interpret(body, operands, evaluate, constant)
    return [None] * len(eqn.outvars)


def _add(a: AffineForm, b: AffineForm) -> AffineForm:
    return AffineForm(
        tuple(x + y for x, y in zip(a.coefficients, b.coefficients)), a.constant + b.constant
    )


def _scale(a: AffineForm, factor: int) -> AffineForm:
    return AffineForm(tuple(c * factor for c in a.coefficients), a.constant * factor)


def _multiply(a: AffineForm, b: AffineForm) -> AffineForm | None:
    if a.is_constant:
        return _scale(b, a.constant)
    return _scale(a, b.constant) if b.is_constant else None


_RULES = {
    "add": _add,
    "sub": lambda a, b: _add(a, _scale(b, -1)),
    "mul": _multiply,
    "neg": lambda a: _scale(a, -1),
    "convert_element_type": lambda a: a,
    "multiple_of": lambda a: a,
    "max_contiguous": lambda a: a,
}
