"""Lower and upper bounds of an expression over all values of its variables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .expression import DimExpr, of_factor, of_terms
from .factors import ONE, Factor, Monomial
from .linear import Effort, least

if TYPE_CHECKING:
    from .scope import SymbolicScope

Interval = tuple[Any, Any]
INF = math.inf
_MOST_FACTS = 120


def bounds_of(scope: SymbolicScope, expr: Any, splits: int = 2) -> Interval:
    """The best bounds found, by interval arithmetic and by the known linear facts.

    Args:
      splits: the number of maxima and minima that are replaced by each of their operands.
    """
    if type(expr) is int:
        return expr, expr
    low, high = interval_of(scope, expr)
    if scope.effort.left <= 0:
        return low, high
    facts = _facts_about(scope, expr)
    effort = scope.effort
    low, high = _tightened(expr, facts, low, effort), -_tightened(-expr, facts, -high, effort)
    for m, c in expr.terms if splits else ():
        if len(m) != 1 or m[0][1] != 1 or m[0][0].op not in ("max", "min"):
            continue
        factor = m[0][0]
        rest = expr - c * of_factor(scope, factor)
        cases = [bounds_of(scope, rest + c * x, splits - 1) for x in factor.operands]
        if (c > 0) == (factor.op == "min"):  # the least of the cases
            low = max(low, min(a for a, _ in cases))
        else:
            high = min(high, max(b for _, b in cases))
    return low, high


def _tightened(expr: DimExpr, facts: list[DimExpr], low: Any, effort: Effort) -> Any:
    """A lower bound at least as good as ``low``."""
    forms = [({m: c for m, c in f.terms if m != ONE}, dict(f.terms).get(ONE, 0)) for f in facts]
    terms = dict(expr.terms)
    constant = terms.pop(ONE, 0)
    bound = least(terms, forms, effort)
    return low if bound is None else max(low, math.ceil(bound) + constant)


def interval_of(scope: SymbolicScope, expr: Any) -> Interval:
    """Bounds by interval arithmetic alone."""
    if type(expr) is int:
        return expr, expr
    low = high = 0
    for m, c in expr.terms:
        a, b = _monomial_interval(scope, m)
        a, b = _times((c, c), (a, b))
        low, high = low + a, high + b
    return low, high


def _monomial_interval(scope: SymbolicScope, m: Monomial) -> Interval:
    interval: Interval = (1, 1)
    for factor, exponent in m:
        base = factor_interval(scope, factor)
        power = base
        for _ in range(exponent - 1):
            power = _times(power, base)
        if exponent % 2 == 0:
            power = (max(power[0], 0), power[1])
        interval = _times(interval, power)
    return interval


def _times(x: Interval, y: Interval) -> Interval:
    # 0 times an infinite end is 0: the end stands for all finite numbers.
    corners = [0 if 0 in (a, b) else a * b for a in x for b in y]
    return min(corners), max(corners)


def factor_interval(scope: SymbolicScope, factor: Factor) -> Interval:
    """Bounds of a variable or an operation, by intervals."""
    if not factor.op:
        return scope.variable_bounds.get(factor.name, (1, INF))
    x, y = (interval_of(scope, o) for o in factor.operands)
    if factor.op == "max":
        return max(x[0], y[0]), max(x[1], y[1])
    if factor.op == "min":
        return min(x[0], y[0]), min(x[1], y[1])
    if y[0] <= 0 <= y[1]:
        return -INF, INF
    if factor.op == "mod":
        if y[0] > 0:
            return (x[0] if 0 <= x[0] and x[1] < y[0] else 0), min(
                y[1] - 1, x[1] if x[0] >= 0 else INF
            )
        return y[0] + 1, 0
    corners = [_floordiv(a, b) for a in x for b in y]
    return min(corners), max(corners)


def _floordiv(a: Any, b: Any) -> Any:
    if abs(b) == INF:
        return 0 if a == 0 or (a > 0) == (b > 0) else (-1 if abs(a) != INF else -INF)
    if abs(a) == INF:
        return a if b > 0 else -a
    return a // b


def _facts_about(scope: SymbolicScope, expr: DimExpr) -> list[DimExpr]:
    """Nonnegative expressions about the monomials of ``expr`` and of related expressions."""
    facts: list[DimExpr] = []
    seen: set[Monomial] = set()
    pending = [expr, *scope.facts]
    facts.extend(f for f in scope.facts if type(f) is DimExpr)
    extrema: list[Factor] = []
    while pending and len(facts) < _MOST_FACTS:
        for m, _ in pending.pop(0).terms:
            if m == ONE or m in seen:
                continue
            seen.add(m)
            if len(m) == 1 and m[0][0].op in ("max", "min"):
                related = [f for e in extrema for f in _facts_of_pair(scope, m[0][0], e)]
                facts.extend(f for f in related if type(f) is DimExpr)
                extrema.append(m[0][0])
            for fact in _facts_of(scope, m):
                if type(fact) is DimExpr:
                    facts.append(fact)
                    pending.append(fact)
    return facts


def _facts_of_pair(scope: SymbolicScope, f: Factor, g: Factor) -> Iterator[Any]:
    """Facts of ``max(x, y)`` and ``max(x, y + d)``, and of ``min``: they differ by at most
    ``d``.
    """
    if f.op != g.op:
        return
    for i in (0, 1):
        for j in (0, 1):
            if f.operands[i] == g.operands[j]:
                apart = f.operands[1 - i] - g.operands[1 - j]
                if type(apart) is int:
                    difference = of_factor(scope, f) - of_factor(scope, g)
                    yield difference - min(apart, 0)
                    yield max(apart, 0) - difference


def _facts_of(scope: SymbolicScope, m: Monomial) -> Iterator[Any]:
    value = of_terms(scope, {m: 1})
    low, high = _monomial_interval(scope, m)
    if low != -INF:
        yield value - low
    if high != INF:
        yield high - value
    if len(m) == 1 and m[0][1] == 1:
        if m[0][0].op:
            yield from _facts_of_operation(scope, m[0][0])
        return
    # For a product of two factors f >= l and g >= k: (f - l) * (g - k) >= 0, and so on.
    first, exponent = m[0]
    rest: Monomial = ((first, exponent - 1), *m[1:]) if exponent > 1 else m[1:]
    f, g = of_factor(scope, first), of_terms(scope, {rest: 1})
    (f_low, f_high), (g_low, g_high) = factor_interval(scope, first), interval_of(scope, g)
    if f_low != -INF and g_low != -INF:
        yield (f - f_low) * (g - g_low)
    if f_high != INF and g_high != INF:
        yield (f_high - f) * (g_high - g)
    if f_low != -INF and g_high != INF:
        yield (f - f_low) * (g_high - g)
    if f_high != INF and g_low != -INF:
        yield (f_high - f) * (g - g_low)


def _facts_of_operation(scope: SymbolicScope, factor: Factor) -> Iterator[Any]:
    value = of_factor(scope, factor)
    x, y = factor.operands
    (x_low, x_high), (y_low, y_high) = interval_of(scope, x), interval_of(scope, y)
    if factor.op == "max":
        yield from (value - x, value - y)
        least_of = min(x_low, y_low)
        if least_of != -INF:  # max + min == x + y
            yield x + y - least_of - value
    elif factor.op == "min":
        yield from (x - value, y - value)
        most = max(x_high, y_high)
        if most != INF:
            yield value - (x + y - most)
    elif y_low > 0 or y_high < 0:
        other = of_factor(scope, Factor("mod" if factor.op == "floordiv" else "floordiv", x, y))
        whole, rest = (value, other) if factor.op == "floordiv" else (other, value)
        difference = x - y * whole - rest
        yield from (difference, -difference)
        if y_low > 0:
            yield from (rest, y - 1 - rest)
        else:
            yield from (-rest, rest - y - 1)
