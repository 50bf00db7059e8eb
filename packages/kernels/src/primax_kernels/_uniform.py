"""Values of a kernel that are equal on all devices, and conditions that are not.

Where operations to other devices are collectives, all devices have to reach each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from primax_core.extend import (
    AbstractRef,
    Eqn,
    Jaxpr,
    Literal,
    Primitive,
    ShapedArray,
    abstract,
    batch,
    jaxprs_in,
    jvp,
    lower,
    summarize,
)

from ._devices import device_position_p
from ._kernel import Kernel
from ._remote_operations import REMOTE, communicates


class Uniformity(NamedTuple):
    """The result of `uniformity`.

    Attributes:
      results: for each result, whether it is equal on all devices.
      differs: the first condition, or loop, around an operation to another device whose predicate
        may differ from device to device; ``None`` if there is none.
    """

    results: list[bool]
    differs: Eqn | None


def uniformity(jaxpr: Jaxpr, uniform: Sequence[bool]) -> Uniformity:
    """Values that may differ from device to device, and conditions that depend on them.

    Contents of references are taken to differ.

    Args:
      uniform: for each argument, whether it is equal on all devices.
    """
    known: set[Any] = {v for v, u in zip(jaxpr.invars, uniform) if u}
    known |= {v for v in jaxpr.constvars if not isinstance(v.aval, AbstractRef)}
    differs: Eqn | None = None
    for eqn in jaxpr.eqns:
        equal = [type(v) is Literal or v in known for v in eqn.invars]
        if differs is None and any(communicates(body) for body in jaxprs_in(eqn.params)):
            differs = _inside(eqn, equal)
        if all(equal) and eqn.primitive is not device_position_p and eqn.primitive not in REMOTE:
            known |= {v for v in eqn.outvars if not isinstance(v.aval, AbstractRef)}
    return Uniformity([type(v) is Literal or v in known for v in jaxpr.outvars], differs)


def _inside(eqn: Eqn, equal: list[bool]) -> Eqn | None:
    """The condition that differs, the equation itself or one of its bodies."""
    name, params = eqn.primitive.name, eqn.params
    if name == "cond":
        if not equal[0]:
            return eqn
        bodies = [(branch, equal[1:]) for branch in params["branches"]]
    elif name == "scan":
        n, m, body = params["num_consts"], params["num_carry"], params["jaxpr"]
        carry = _staying(body, equal[:n], equal[n : n + m], equal[n + m :])
        bodies = [(body, [*equal[:n], *carry, *equal[n + m :]])]
    elif name == "while":
        n, m, body = params["cond_nconsts"], params["body_nconsts"], params["body_jaxpr"]
        carry = _staying(body, equal[n : n + m], equal[n + m :], [])
        if not uniformity(params["cond_jaxpr"], [*equal[:n], *carry]).results[0]:
            return eqn
        bodies = [(body, [*equal[n : n + m], *carry])]
    else:
        bodies = [(body, equal[len(equal) - len(body.invars) :]) for body in jaxprs_in(params)]
    inner = (uniformity(body, arguments).differs for body, arguments in bodies)
    return next((e for e in inner if e is not None), None)


def _staying(
    body: Jaxpr, consts: list[bool], carry: list[bool], rows: list[bool]
) -> list[bool]:  # fmt: skip
    """For each value that a loop carries, whether it stays equal on all devices."""
    while True:
        after = uniformity(body, [*consts, *carry, *rows]).results[: len(carry)]
        both = [a and b for a, b in zip(carry, after)]
        if both == carry:
            return carry
        carry = both


refusal_p: Final[Primitive] = Primitive("refused_communication")
"""A value of a program that cannot be lowered, because devices may not communicate together."""


@refusal_p.rule(abstract)
def _abstract(aval: ShapedArray, *, message: str) -> ShapedArray:
    return aval


@refusal_p.rule(lower)
def _refuse(ctx: Any, x: Any, *, message: str) -> Any:
    raise NotImplementedError(message)


@refusal_p.rule(jvp)
def _refuse_jvp(primals: Any, tangents: Any, *, message: str) -> Any:
    raise NotImplementedError(message)


@refusal_p.rule(batch)
def _refuse_batch(axis: Any, args: Any, dims: Any, *, message: str) -> Any:
    raise NotImplementedError(message)


def checked(kernel: Kernel, values: Sequence[Any]) -> list[Any]:
    """Operands or results of the expansion of a kernel, where communication is a collective.

    They cannot be lowered if a condition around it may differ from device to device.
    """
    eqn = None
    if kernel.communicates:
        rank = len(kernel.grid)
        arguments = [i < rank for i in range(len(kernel.jaxpr.invars))]
        eqn = uniformity(kernel.jaxpr, arguments).differs
    if eqn is None:
        return list(values)
    where = f"{summarize(eqn.source)}: " if eqn.source else ""
    message = (
        f"{where}a copy or signal to another device is inside of {eqn.primitive.name}, whose "
        "condition may differ from device to device; here all devices communicate together: "
        "let the condition depend on program_id and constants, or communicate always, with "
        f"this device itself where nothing is sent (in the kernel {kernel.source})"
    )
    return [refusal_p.bind(x, message=message) for x in values]
