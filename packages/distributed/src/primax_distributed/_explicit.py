"""Types of results over explicit axes, from the axes of the operands.

The axes of results follow from Shardy's rules of the operations that a primitive is lowered to.
Primitives whose types say more or less than these rules are in `_explicit_rules`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from primax_core.extend import Primitive, lowering
from primax_core.extend.placements import is_placed

if TYPE_CHECKING:
    from primax_core.extend.lowering import AxisRule, LoweredForm, LoweredOperation

Names = tuple[Hashable, ...]
Spec = tuple[Names, ...]
"""For each axis of a value, the mesh axes that divide it."""

Sizes = Mapping[Hashable, int]


class Ambiguous(Exception):
    """The reason why the axes of a result do not follow from those of the operands."""


def spec_of(aval: Any) -> Spec:
    """The explicit mesh axes in a type."""
    spec: Spec = aval.placement.spec if is_placed(aval) else ((),) * aval.ndim
    return spec


def merged(a: Names, b: Names) -> Names:
    """The axes of an axis that two values have in common.

    Raises:
      Ambiguous: if both are divided, and differ.
    """
    if a == b or not b:
        return a
    if not a:
        return b
    raise Ambiguous(
        f"the operands are divided differently along one axis, by {text(a)} and by {text(b)}"
    )


def text(names: Names) -> str:
    """Mesh axes as they are printed in types."""
    return f"{names[0]}" if len(names) == 1 else f"({','.join(map(str, names))})"


def check_result(spec: Spec, shape: Sequence[Any], sizes: Sizes) -> None:
    """Raise `Ambiguous` if an array of a shape cannot be divided so."""
    used: set[Hashable] = set()
    for i, (size, names) in enumerate(zip(shape, spec)):
        for name in names:
            if name in used:
                raise Ambiguous(f"two axes of the result would be divided along {name!r}")
            used.add(name)
        n = math.prod(sizes[name] for name in names)
        if n > 1 and size % n:
            raise Ambiguous(
                f"axis {i} of the result has the size {size}, which is not divisible by {n}, the "
                f"size of {text(names)}"
            )


def specs_by_shardy(
    prim: Primitive, avals: Sequence[Any], params: dict[str, Any], specs: Sequence[Spec],
    out_ranks: Sequence[int], sizes: Sizes,
) -> list[Spec]:  # fmt: skip
    """The axes of results by Shardy's rules of the lowered operations.

    Args:
      avals: types of the operands, without placements.
      specs: their mesh axes.
      out_ranks: the rank of each result.
    """
    form = lowering.axis_rules(prim, avals, params)
    outs = _forward(form, list(specs), sizes)
    # Extended dtypes are lowered with more axes.
    return [(*s[:n], *((),) * (n - len(s))) for s, n in zip(outs, out_ranks)]


def _forward(form: LoweredForm, specs: Sequence[Spec], sizes: Sizes) -> list[Spec]:
    values: dict[int, Spec] = dict(enumerate(specs))
    for operation in form.operations:
        operands = [values[i] for i in operation.operands]
        if operation.body is not None:
            outs = _forward(operation.body, operands, sizes)
        elif not any(any(s) for s in operands):
            outs = [((),) * rank for rank in operation.ranks]
        elif operation.rule is None:
            outs = _by_rank(operation, operands)
        else:
            outs = _by_rule(operation.rule, operands, sizes)
        values.update(zip(operation.results, outs))
    return [values[i] for i in form.results]


def _by_rank(operation: LoweredOperation, operands: Sequence[Spec]) -> list[Spec]:
    """Of operations without a rule: results are divided as the operands of their rank."""
    outs = []
    for rank in operation.ranks:
        spec: Spec | None = None
        for s in operands:
            if len(s) == rank and any(s):
                spec = s if spec is None else tuple(map(merged, spec, s))
        if not rank:
            spec = ()
        if spec is None:
            name = operation.name
            raise Ambiguous(f"there is no rule how the axes of the operation {name} correspond")
        outs.append(spec)
    return outs


def _by_rule(rule: AxisRule, operands: Sequence[Spec], sizes: Sizes) -> list[Spec]:
    names_of: dict[int, Names] = {}
    holders: dict[int, int] = {}
    for mapping, spec in zip(rule.operands, operands):
        for factors, names in zip(mapping, spec):
            for factor, own in split_names(factors, names, rule.sizes, sizes).items():
                names_of[factor] = merged(names_of.get(factor, ()), own)
                holders[factor] = holders.get(factor, 0) + 1
    for factor, names in names_of.items():
        if factor in rule.reduction and holders[factor] > 1:
            raise Ambiguous(
                f"an axis that is summed is divided along {text(names)} in each operand"
            )
        if factor in rule.whole:
            raise Ambiguous(f"an axis that must not be divided is divided along {text(names)}")
    return [
        tuple([joined_names([(rule.sizes[f], names_of.get(f, ())) for f in factors])
               for factors in mapping])
        for mapping in rule.results
    ]  # fmt: skip


def split_names(
    factors: Sequence[int], names: Names, factor_sizes: Sequence[int], sizes: Sizes
) -> dict[int, Names]:
    """The mesh axes of each factor of an axis; without factors that have none.

    Raises:
      Ambiguous: if the factors cannot be divided along them.
    """
    out: dict[int, Names] = {}
    rest = list(names)
    for i, factor in enumerate(factors):
        size, n, own = factor_sizes[factor], 1, []
        while rest and size % (n * sizes[rest[0]]) == 0 and (n < size or sizes[rest[0]] == 1):
            n *= sizes[rest[0]]
            own.append(rest.pop(0))
        if own:
            out[factor] = tuple(own)
        if rest and n != size and (i + 1 < len(factors) or not own or n < size):
            raise Ambiguous(
                f"a part of an axis, of size {size}, cannot be divided along {text(names)}"
            )
    return out


def joined_names(parts: Sequence[tuple[int, Names]]) -> Names:
    """The mesh axes of an axis that is a product of factors: pairs of a size and mesh axes.

    Raises:
      Ambiguous: if a factor is divided that follows one that is not.
    """
    out: Names = ()
    whole = True
    for size, names in parts:
        if names and not whole:
            raise Ambiguous(f"axes are merged, a minor one of which is divided along {text(names)}")
        out += names
        if size > 1 and not names:
            whole = False
    return out
