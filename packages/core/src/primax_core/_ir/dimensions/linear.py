"""Exact bounds of linear forms under linear inequalities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

Form = Mapping[Any, int]
_STEPS = 400


class Effort:
    """The remaining number of elements of tables that searches may compute.

    Untrusted expressions have a limit: one step of a search can take a second.
    """

    __slots__ = ("left",)

    def __init__(self, left: float):
        self.left: float = left

    def steps(self, size: int) -> Iterator[None]:
        """Yield before each step on a table of a size, while steps are left."""
        for _ in range(_STEPS):
            self.left -= size
            if self.left < 0:
                return
            yield


def least(objective: Form, facts: Sequence[tuple[Form, int]], effort: Effort) -> Fraction | None:
    """The minimum of ``objective`` subject to ``form + constant >= 0`` for all facts.

    ``None`` if there is none, or if the search does not find it. By duality it is the maximum of
    ``-sum(w * constant)`` over weights ``w >= 0`` of the facts with ``sum(w * form) == objective``.
    Each such choice of weights proves its bound, so the search may stop early.
    """
    rows = sorted({*objective, *(k for f, _ in facts for k in f)}, key=repr)
    size = len(rows) * len(facts)
    if size > effort.left:
        return None
    signs = [-1 if objective.get(k, 0) < 0 else 1 for k in rows]
    table = [
        [Fraction(s * f.get(k, 0)) for f, _ in facts] + [Fraction(s * objective.get(k, 0))]
        for k, s in zip(rows, signs)
    ]
    n = len(facts)
    basis = [n + i for i in range(len(rows))]  # one artificial weight for each row
    if not _feasible(table, basis, n, effort):
        return None
    costs = [Fraction(c) for _, c in facts]
    _pivots(table, basis, costs, n, effort)
    return -sum((costs[b] * row[-1] for b, row in zip(basis, table) if b < n), Fraction(0))


def _feasible(table: list[list[Fraction]], basis: list[int], n: int, effort: Effort) -> bool:
    """Reduce the artificial weights to zero; return True on success."""

    def cost(j: int) -> Fraction:
        return -sum((row[j] for b, row in zip(basis, table) if b >= n), Fraction(0))

    for _ in effort.steps(len(table) * n):
        entering = next((j for j in range(n) if cost(j) < 0), None)
        if entering is None:
            break
        leaving = _ratio(table, basis, entering)
        if leaving is None:
            break
        _pivot(table, basis, leaving, entering)
    return all(row[-1] == 0 for b, row in zip(basis, table) if b >= n)


def _pivots(
    table: list[list[Fraction]], basis: list[int], costs: list[Fraction], n: int, effort: Effort
) -> None:
    """Minimize ``sum(costs * weights)`` with the artificial weights at zero."""
    for _ in effort.steps(len(table) * n):
        for j in range(n):
            reduced = costs[j] - sum(
                (costs[b] * row[j] for b, row in zip(basis, table) if b < n), Fraction(0)
            )
            if reduced < 0:
                break
        else:
            return
        at_zero = [i for i, b in enumerate(basis) if b >= n and table[i][j] != 0]
        leaving = at_zero[0] if at_zero else _ratio(table, basis, j)
        if leaving is None:
            return  # the facts are contradictory: any bound is valid
        _pivot(table, basis, leaving, j)


def _ratio(table: list[list[Fraction]], basis: list[int], j: int) -> int | None:
    best: tuple[Any, ...] | None = None
    for i, row in enumerate(table):
        if row[j] > 0:
            candidate = (row[-1] / row[j], basis[i], i)
            if best is None or candidate < best:
                best = candidate
    return None if best is None else best[2]


def _pivot(table: list[list[Fraction]], basis: list[int], i: int, j: int) -> None:
    pivot = table[i][j]
    row = table[i] = [v / pivot for v in table[i]]
    for k, other in enumerate(table):
        if k != i and other[j] != 0:
            f = other[j]
            table[k] = [v - f * w for v, w in zip(other, row)]
    basis[i] = j
