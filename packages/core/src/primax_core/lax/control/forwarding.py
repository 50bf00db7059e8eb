"""Carries that a loop does not change: they become constants of the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..._engine.call import jit_p
from ..._engine.remat import remat_p
from ..._ir.jaxpr import Jaxpr
from ..._ir.rules import RuleKind
from ..._trace.array import Array
from ..._transform.derived import derive_from_jaxpr
from ..selection import select_n_p
from .bodies import Body, permuted

forwards: Final[RuleKind[Callable[..., Sequence[Any]]]] = RuleKind(
    "forwards", "(args, **params) -> outs", versioned=True
)
"""Results that are operands, in derivatives too. ``args`` has a hashable object for each operand,
``None`` if unknown; a result that is an operand is represented by its object, others by ``None``.
"""


def forwarded(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """The rule of a whole jaxpr."""
    values: dict[Any, Any] = dict(zip(jaxpr.invars, args))
    for eqn in jaxpr.eqns:
        rule = eqn.primitive.rules.get(forwards)
        if rule is not None:
            outs = rule([values.get(v) for v in eqn.invars], **eqn.params)
            values.update(zip(eqn.outvars, outs))
    return [values.get(v) for v in jaxpr.outvars]


def unchanged_carries(jaxpr: Jaxpr, num_consts: int, num_carry: int) -> tuple[bool, ...]:
    """The carries that the body of a loop returns unchanged; ``()`` if there is none."""
    outs = forwarded(jaxpr, range(len(jaxpr.invars)))
    mask = tuple(outs[i] == num_consts + i for i in range(num_carry))
    return mask if True in mask else ()


def unchanged_of(body: Body, num_carry: int) -> tuple[bool, ...]:
    """:func:`unchanged_carries` of a traced function."""
    mask = body.unchanged
    if mask is None:
        mask = body.unchanged = unchanged_carries(body.jaxpr, len(body.consts), num_carry)
    return mask


def carries_as_operands(
    jaxpr: Jaxpr, args: Sequence[Any], num_consts: int, num_carry: int
) -> list[Any]:
    """The rule of a loop with these operands: an unchanged carry is its initial value."""
    init = args[num_consts : num_consts + num_carry]
    mask = unchanged_carries(jaxpr, num_consts, num_carry) or (False,) * num_carry
    return [x if m else None for x, m in zip(init, mask)]


@jit_p.rule(forwards)
@remat_p.rule(forwards)
def _call(args, *, jaxpr, **_):
    return forwarded(jaxpr, args)


@select_n_p.rule(forwards)
def _select_n(args):
    return [args[1] if len(set(args[1:])) == 1 else None]


class Reduced:
    """A loop whose unchanged carries are constants.

    Attributes:
      init: the initial values of the remaining carries.
    """

    def __init__(self, mask: Sequence[bool], init: Sequence[Any]):
        """``mask`` marks the unchanged carries, of which arrays become constants."""
        marks = tuple(m and isinstance(x, Array) for m, x in zip(mask, init))
        self._mask: tuple[bool, ...] = marks
        self._values: Sequence[Any] = init
        self.init: list[Any] = [x for x, m in zip(init, marks) if not m]

    def body(self, jaxpr: Jaxpr, consts: Sequence[Any], loop: bool) -> tuple[Jaxpr, list[Any]]:
        """The body (or the condition, if not ``loop``) of the reduced loop, and its constants."""
        n = len(consts)
        reduced, used = derive_from_jaxpr(
            jaxpr, "unchanged carries", (n, self._mask, loop),
            lambda: _without(jaxpr, n, self._mask, loop),
        )  # fmt: skip
        return reduced, [*consts, *(self._values[i] for i in used)]

    def results(self, outs: Sequence[Any]) -> list[Any]:
        """The results of the whole loop, from those of the reduced one."""
        rest = iter(outs)
        carries = [x if m else next(rest) for x, m in zip(self._values, self._mask)]
        return [*carries, *rest]


def _without(jaxpr: Jaxpr, n: int, mask: Sequence[bool], loop: bool) -> tuple[Jaxpr, list[int]]:
    remaining = [i for i, m in enumerate(mask) if not m]
    outs = [*remaining, *range(len(mask), len(jaxpr.outvars))] if loop else [0]
    atoms = {v for eqn in jaxpr.eqns for v in eqn.invars}
    atoms.update(jaxpr.outvars[i] for i in outs)
    used = [i for i, m in enumerate(mask) if m and jaxpr.invars[n + i] in atoms]
    rest = range(n + len(mask), len(jaxpr.invars))
    ins = [*range(n), *(n + i for i in used), *(n + i for i in remaining), *rest]
    return permuted(jaxpr, ins, outs), used
