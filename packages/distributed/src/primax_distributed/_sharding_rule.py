"""Sharding rules: the correspondence of the axes of operands and results by names.

`"i j, j k -> i k"` is the rule of a product of matrices. An axis is a factor, or the product of
several: `(i j)`. `...` stands for any number of leading axes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from primax_core.extend import lowering

if TYPE_CHECKING:
    from primax_core.extend.lowering import AxisRule

BATCHING: Final = "…"
"""The leading axes of an array; a number behind it distinguishes several groups."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_BATCH: Final = re.compile(r"…[0-9]*")
_TOKEN: Final = re.compile(r"\s+|(?:\.\.\.|…)[0-9]*|[A-Za-z0-9_]+|[()]|.")


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str):
        raise ValueError(
            f"{what} consists of names of factors, got {name!r} of type {type(name).__name__}"
        )
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name of a factor: names consist of letters, digits and underscores, "
            "and begin with a letter"
        )


class CompoundFactor(tuple[str, ...]):
    """An axis that is the product of several factors, the major one first.

    Raises:
      ValueError: for less than two factors, or an invalid name.

    >>> CompoundFactor("i", "j")
    ('i', 'j')
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(
                f"CompoundFactor is the product of at least two factors, got {factors}: write a "
                "single factor by its name"
            )
        for factor in factors:
            _check_name(factor, "CompoundFactor")
        return super().__new__(cls, factors)

    def __getnewargs__(self) -> tuple[str, ...]:
        return (*self,)


class ArrayMapping(tuple[str | CompoundFactor, ...]):
    """The factors of the axes of one array.

    Args:
      dim_mappings: for each axis the name of a factor or a `CompoundFactor`; the first may be
        `BATCHING`.

    Raises:
      ValueError: for anything else.

    >>> ArrayMapping("i", CompoundFactor("j", "k"))
    ('i', ('j', 'k'))
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        for i, dim in enumerate(dim_mappings):
            if isinstance(dim, CompoundFactor):
                continue
            if isinstance(dim, str) and _BATCH.fullmatch(dim):
                if i:
                    raise ValueError(
                        f"{dim!r} is entry {i} of ArrayMapping: it stands for the leading axes, "
                        "so it must be the first entry"
                    )
                continue
            _check_name(dim, "ArrayMapping, apart from CompoundFactor,")
        return super().__new__(cls, dim_mappings)

    def __getnewargs__(self) -> tuple[str | CompoundFactor, ...]:
        return (*self,)


class SdyShardingRule:
    """Shardy's rule of an operation: the factors of the axes of its operands and results.

    Args:
      operand_mappings, result_mappings: a tuple with an `ArrayMapping` for each array.
      reduction_factors: factors over which the operation reduces.
      need_replication_factors: factors along which arrays must not be divided.
      permutation_factors: factors along which the operation moves elements.
      factor_sizes: the sizes of the factors that occur only in compound factors.

    Raises:
      TypeError: if a mapping is not a tuple.
      ValueError: if a factor is unknown, is in two of the sets, has no size or needs none.

    >>> SdyShardingRule((ArrayMapping("i", "j"),), (ArrayMapping("i"),), reduction_factors=("j",))
    SdyShardingRule((('i', 'j'),), (('i',),), {}, reduction_factors=('j',))
    """

    def __init__(
        self,
        operand_mappings: Sequence[ArrayMapping],
        result_mappings: Sequence[ArrayMapping],
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings: tuple[ArrayMapping, ...] = _mappings(operand_mappings, "operand")
        self.result_mappings: tuple[ArrayMapping, ...] = _mappings(result_mappings, "result")
        self.factor_sizes: dict[str, int] = factor_sizes
        self.reduction_factors: tuple[str, ...] = tuple(reduction_factors)
        self.need_replication_factors: tuple[str, ...] = tuple(need_replication_factors)
        self.permutation_factors: tuple[str, ...] = tuple(permutation_factors)
        dims = [d for m in (*self.operand_mappings, *self.result_mappings) for d in m]
        whole = {d for d in dims if isinstance(d, str)}
        parts = {f for d in dims if not isinstance(d, str) for f in d}
        self._check_sizes(whole, parts)
        self._check_sets(whole | parts)
        results = {f for m in self.result_mappings for d in m for f in _factors(d)}
        for name in self.reduction_factors:
            if name in results:
                raise ValueError(
                    f"the factor {name!r} is in reduction_factors and in a result: a result does "
                    "not have the axes over which the function reduces"
                )

    def _check_sizes(self, whole: set[str], parts: set[str]) -> None:
        for name, size in self.factor_sizes.items():
            if name not in whole | parts:
                raise ValueError(
                    f"the size of the factor {name!r} is given, but the rule does not contain it"
                )
            if name in whole:
                raise ValueError(
                    f"the factor {name!r} is a whole axis, which has its own size: do not pass "
                    f"{name}={size}"
                )
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"the size of the factor {name!r} must be positive, got {size!r}")
        for name in sorted(parts - whole - {*self.factor_sizes}):
            raise ValueError(
                f"the factor {name!r} occurs only in products of factors: pass its size, {name}=..."
            )

    def _check_sets(self, names: set[str]) -> None:
        seen: dict[str, str] = {}
        for attribute in ("reduction_factors", "need_replication_factors", "permutation_factors"):
            for name in getattr(self, attribute):
                if name not in names:
                    raise ValueError(
                        f"{attribute} contains {name!r}, but the rule does not contain it"
                    )
                if name in seen:
                    raise ValueError(
                        f"the factor {name!r} is in {seen[name]} and in {attribute}: it can be in "
                        "only one of them"
                    )
                seen[name] = attribute

    def __repr__(self) -> str:
        sets = [
            f", {name}={getattr(self, name)}"
            for name in ("reduction_factors", "need_replication_factors", "permutation_factors")
            if getattr(self, name)
        ]
        mappings = f"{self.operand_mappings}, {self.result_mappings}"
        return f"SdyShardingRule({mappings}, {self.factor_sizes}{''.join(sets)})"


def _factors(dim: str | CompoundFactor) -> tuple[str, ...]:
    return (dim,) if isinstance(dim, str) else dim


def _mappings(values: Any, what: str) -> tuple[ArrayMapping, ...]:
    if isinstance(values, str) or not isinstance(values, (tuple, list)):
        raise TypeError(
            f"{what}_mappings of SdyShardingRule is a tuple with an ArrayMapping for each {what}, "
            f"got {values!r}"
        )
    for value in values:
        if isinstance(value, str) or not isinstance(value, (tuple, list)):
            raise TypeError(
                f"{what}_mappings of SdyShardingRule contains {value!r}: write ArrayMapping(...)"
            )
    return tuple([v if isinstance(v, ArrayMapping) else ArrayMapping(*v) for v in values])


def parse_rule(text: Any, **options: Any) -> SdyShardingRule:
    """The rule with a text such as `"i (j k), k -> i j"`.

    Raises:
      TypeError: if it is no string.
      ValueError: if it is not a rule.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"a sharding rule is a string or SdyShardingRule, got {text!r} of type "
            f"{type(text).__name__}"
        )
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(
            f"the sharding rule {text!r} contains '->' {len(sides) - 1} times: write the factors "
            "of operands and results as in 'i j, j k -> i k'"
        )
    operands, results = [
        tuple([_parse_array(part, text) for part in side.split(",")]) for side in sides
    ]
    return SdyShardingRule(operands, results, **options)


def _parse_array(part: str, text: str) -> ArrayMapping:
    dims: list[Any] = []
    group: list[str] | None = None
    for token in _TOKEN.findall(part):
        if token.isspace():
            continue
        if token.startswith(("...", BATCHING)):
            if dims or group is not None:
                raise ValueError(f"'...' is not the first axis in {part.strip()!r} of {text!r}")
            dims.append(BATCHING + (token.removeprefix("...").removeprefix(BATCHING) or "0"))
        elif token == "(":
            if group is not None:
                raise ValueError(f"parentheses are nested in {part.strip()!r} of {text!r}")
            group = []
        elif token == ")":
            if group is None:
                raise ValueError(f"')' without '(' in {part.strip()!r} of {text!r}")
            dims.append(CompoundFactor(*group))
            group = None
        else:
            _check_name(token, "a sharding rule")
            (dims if group is None else group).append(token)
    if group is not None:
        raise ValueError(f"'(' without ')' in {part.strip()!r} of {text!r}")
    return ArrayMapping(*dims)


class _Factors:
    """The numbers and sizes of the factors of a rule."""

    def __init__(self, rule: SdyShardingRule) -> None:
        self.rule = rule
        self.numbers: dict[str, int] = {}
        self.sizes: list[int] = []

    def number(self, name: str, size: int) -> int:
        """The number of a factor that is a whole axis of some size, or has a size in the rule."""
        size = self.rule.factor_sizes.get(name, size)
        known = self.numbers.setdefault(name, len(self.sizes))
        if known == len(self.sizes):
            self.sizes.append(size)
        elif name.startswith(BATCHING) and self.sizes[known] != size:
            raise ValueError(
                f"the leading axes that '...' stands for have the sizes {self.sizes[known]} and "
                f"{size} in different arrays"
            )
        # An operation may change the size of an axis, as concatenation does.
        self.sizes[known] = min(self.sizes[known], size)
        return known


def axis_rule(
    rule: SdyShardingRule, in_shapes: Sequence[tuple[int, ...]],
    out_shapes: Sequence[tuple[int, ...]],
) -> AxisRule:  # fmt: skip
    """A rule for arrays of some shapes.

    Raises:
      ValueError: if the number of arrays, their ranks or the sizes do not fit.
    """
    factors = _Factors(rule)
    sides = []
    # Whole axes first: they give sizes to factors that occur in products too.
    arrays = {"operand": (rule.operand_mappings, in_shapes)}
    arrays["result"] = (rule.result_mappings, out_shapes)
    expanded = {}
    for what, (mappings, shapes) in arrays.items():
        if len(mappings) != len(shapes):
            raise ValueError(
                f"the sharding rule has {len(mappings)} {what}s, but the function has "
                f"{len(shapes)}: {rule}"
            )
        expanded[what] = [
            _expanded(mapping, shape, f"{what} {i}")
            for i, (mapping, shape) in enumerate(zip(mappings, shapes))
        ]
        for dims, shape in zip(expanded[what], shapes):
            for dim, size in zip(dims, shape):
                if isinstance(dim, str):
                    factors.number(dim, size)
    for what, (_, shapes) in arrays.items():
        sides.append(
            tuple(
                _numbers(factors, dims, shape, f"{what} {i}")
                for i, (dims, shape) in enumerate(zip(expanded[what], shapes))
            )
        )
    sets = [
        frozenset([factors.numbers[n] for n in names if n in factors.numbers])
        for names in (
            rule.reduction_factors, rule.need_replication_factors, rule.permutation_factors
        )
    ]  # fmt: skip
    return lowering.AxisRule(tuple(factors.sizes), sides[0], sides[1], *sets)


def _expanded(mapping: ArrayMapping, shape: tuple[int, ...], what: str) -> list[Any]:
    """The factors of all axes, with numbered ones for the leading axes."""
    dims: list[Any] = list(mapping)
    batch = dims.pop(0) if dims and isinstance(dims[0], str) and dims[0][0] == BATCHING else None
    extra = len(shape) - len(dims)
    if extra < 0 or extra and batch is None:
        raise ValueError(
            f"{what} has the shape {shape}, but the sharding rule has "
            f"{'at least ' if batch else ''}{len(dims)} axes for it: {mapping}"
        )
    return [f"{batch}_{i}" for i in range(extra)] + dims


def _numbers(
    factors: _Factors, dims: Sequence[Any], shape: tuple[int, ...], what: str
) -> tuple[tuple[int, ...], ...]:
    numbers = []
    for dim, size in zip(dims, shape):
        names = _factors(dim)
        numbers.append(tuple([factors.number(name, size) for name in names]))
        product = math.prod([factors.sizes[n] for n in numbers[-1]])
        if len(names) > 1 and product != size:
            raise ValueError(
                f"{what} has an axis of size {size}, but the product of its factors {dim} is "
                f"{product}"
            )
    flat = [n for group in numbers for n in group]
    if len({*flat}) != len(flat):
        raise ValueError(f"the sharding rule has one factor twice for {what}: {tuple(dims)}")
    return tuple(numbers)


def with_leading(
    rule: AxisRule, sizes: Sequence[int], operands: Sequence[Sequence[int]], n_results: int
) -> AxisRule:
    """The rule of a mapped operation.

    Args:
      sizes: the sizes of the mapped axes.
      operands: for each operand the mapped axes that it has, leading, in order.
      n_results: the number of results, which have all of them.
    """
    n = len(rule.sizes)
    everything = tuple([(n + k,) for k in range(len(sizes))])
    return rule._replace(
        sizes=(*rule.sizes, *sizes),
        operands=tuple(
            (*((n + k,) for k in levels), *own) for levels, own in zip(operands, rule.operands)
        ),
        results=tuple((*everything, *own) for own in rule.results),
    )
