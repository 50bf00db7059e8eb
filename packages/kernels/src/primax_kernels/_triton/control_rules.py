"""Loops, conditions and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core import lax
from primax_core.extend import Jaxpr

from .._emission.loops import carry_at, counters_of
from .._emission.values import names, types_of
from .conversion import convert
from .emitter import Emitter
from .memory import RegisterRef
from .registry import Context, triton
from .shape_rules import part, placed
from .types import BOOL, INT32
from .values import Value


def registers(operands: Sequence[Any]) -> list[RegisterRef]:
    """The references to registers among operands, each once."""
    refs = [x for x in operands if isinstance(x, RegisterRef)]
    return [r for i, r in enumerate(refs) if r not in refs[:i]]


def _results(name: str, like: Sequence[Value]) -> list[Value]:
    return [Value(f"{name}#{i}", x.dtype, x.shape) for i, x in enumerate(like)]


def _contents(refs: Sequence[RegisterRef]) -> list[Value]:
    return [r.value for r in refs]


def _replace(refs: Sequence[RegisterRef], values: Sequence[Value]) -> None:
    for r, value in zip(refs, values):
        r.value = value


def for_loop(
    e: Emitter, lower: int | Value, upper: int | Value, carry: Sequence[Value],
    refs: Sequence[RegisterRef], body: Callable[[Value, list[Value]], Sequence[Value]],
    stride: int = 1,
) -> list[Value]:  # fmt: skip
    """A loop from a number to another.

    Args:
      lower, upper: the first number and the one after the last, not negative.
      stride: the distance of the numbers.
      carry: values that each step replaces.
      refs: references whose contents it may replace.
      body: from the number of the step and the carry to the next carry.
    """
    n = len(carry)
    initial = [*carry, *_contents(refs)]
    first, last = (e.index(x) if isinstance(x, int) else x for x in (lower, upper))
    step = e.index(stride)
    results = e.name() if initial else ""
    low = first.bounds[0] if first.bounds else 0
    high = last.bounds[1] if last.bounds else 2**31 - 1
    number = Value(e.name(), INT32, (), (low, max(high - 1, low)))
    inside = [Value(e.name(), x.dtype, x.shape) for x in initial]
    head = f"scf.for {number.name} = {first.name} to {last.name} step {step.name}"
    if initial:
        pairs = ", ".join(f"{a.name} = {x.name}" for a, x in zip(inside, initial))
        head = f"{results}:{len(initial)} = {head} iter_args({pairs}) -> ({types_of(initial)})"
    e.line(f"{head} : i32 {{")
    with e.region():
        _replace(refs, inside[n:])
        outs = [*body(number, inside[:n]), *_contents(refs)]
        outs = [e.broadcast(x, a.shape) for x, a in zip(outs, inside)]
        if initial:
            e.line(f"scf.yield {names(outs)} : {types_of(outs)}")
    e.line("}")
    final = _results(results, initial)
    _replace(refs, final[n:])
    return final[:n]


def branch(
    e: Emitter, condition: Value, refs: Sequence[RegisterRef],
    then: Callable[[], Sequence[Value]], otherwise: Callable[[], Sequence[Value]],
) -> list[Value]:  # fmt: skip
    """The results of one of two branches."""
    if condition.known is not None:
        return list(then() if condition.known else otherwise())
    before = _contents(refs)
    at, name = len(e.lines), e.name()
    e.line("")  # the head, whose types are known after the branches
    outs: list[Value] = []
    for i, part_ in enumerate((then, otherwise)):
        _replace(refs, before)
        with e.region():
            outs = [*part_(), *_contents(refs)]
            if outs:
                e.line(f"scf.yield {names(outs)} : {types_of(outs)}")
        if i == 0:
            e.line("} else {")
    e.line("}")
    indent = e.lines[at]
    results = _results(name, outs)
    head = f"scf.if {condition.name}"
    if outs:
        head = f"{name}:{len(outs)} = {head} -> ({types_of(outs)})"
    e.lines[at] = f"{indent}{head} {{"
    n = len(outs) - len(refs)
    _replace(refs, results[n:])
    return results[:n]


@lax.cond_p.rule(triton)
def _cond(
    ctx: Context, index: Value, *operands: Any, branches: Sequence[Jaxpr], **_: Any
) -> list[Value]:
    e = ctx.emitter
    refs = registers(operands)

    def choose(i: int) -> list[Value]:
        if i == len(branches) - 1:
            return ctx.lower(branches[i], operands)
        chosen = _is_at_most(e, index, i)
        return branch(
            e, chosen, refs, lambda: ctx.lower(branches[i], operands), lambda: choose(i + 1)
        )

    return choose(0)


def _is_at_most(e: Emitter, index: Value, i: int) -> Value:
    if index.dtype == BOOL:
        index = convert(e, index, INT32)
    return e.compare("le", index, e.constant(i, index.dtype))


@lax.while_p.rule(triton)
def _while(
    ctx: Context, *operands: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
    body_nconsts: int, **_: Any,
) -> list[Value]:  # fmt: skip
    e = ctx.emitter
    n = cond_nconsts + body_nconsts
    cond_consts, body_consts, carry = (
        operands[:cond_nconsts],
        operands[cond_nconsts:n],
        operands[n:],
    )
    refs = registers(operands)
    initial = [*carry, *_contents(refs)]
    results = e.name()
    types_ = types_of(initial)

    def fresh() -> list[Value]:
        return [Value(e.name(), x.dtype, x.shape) for x in initial]

    before, after = fresh(), fresh()
    pairs = ", ".join(f"{a.name} = {x.name}" for a, x in zip(before, initial))
    count = f"{results}:{len(initial)} = " if initial else ""
    e.line(f"{count}scf.while ({pairs}) : ({types_}) -> ({types_}) {{")
    with e.region():
        _replace(refs, before[len(carry) :])
        (condition,) = ctx.lower(cond_jaxpr, [*cond_consts, *before[: len(carry)]])
        outs = [*before[: len(carry)], *_contents(refs)]
        e.line(f"scf.condition({condition.name}) {names(outs)} : {types_}")
    e.line("} do {")
    e.line(f"^bb0({', '.join(f'{a.name}: {a.type}' for a in after)}):")
    with e.region():
        _replace(refs, after[len(carry) :])
        outs = ctx.lower(body_jaxpr, [*body_consts, *after[: len(carry)]])
        outs = [*outs, *_contents(refs)]
        e.line(f"scf.yield {names(outs)} : {types_}")
    e.line("}")
    final = _results(results, initial)
    _replace(refs, final[len(carry) :])
    return final[: len(carry)]


@lax.scan_p.rule(triton)
def _scan(
    ctx: Context, *operands: Any, jaxpr: Jaxpr, length: int, num_consts: int, num_carry: int,
    reverse: bool, **_: Any,
) -> list[Value]:  # fmt: skip
    e = ctx.emitter
    n = num_consts + num_carry
    consts, carry, xs = operands[:num_consts], list(operands[num_consts:n]), operands[n:]
    counters = counters_of(jaxpr, carry, num_consts)
    varying = [i for i in range(num_carry) if i not in counters]
    stacked = [v.aval for v in ctx.eqn.outvars[num_carry:]]
    starts = [carry[i] for i in varying]
    starts += [e.constant(0, a.dtype, a.shape) for a in stacked]

    values_at = carry_at(e, carry, counters)

    def body(number: Value, current: list[Value]) -> list[Value]:
        carried = values_at(number, current[: len(varying)])
        step = e.subtract(e.index(length - 1), number) if reverse else number
        parts = [_element(ctx, x, step) for x in xs]
        outs = ctx.lower(jaxpr, [*consts, *carried, *parts])
        results = [_like(e, outs[i], carry[i]) for i in varying]
        for y, whole in zip(outs[num_carry:], current[len(varying) :]):
            row = e.expand_dims(y, 0)
            zeros = [e.index(0)] * (len(whole.shape) - 1)
            results.append(placed(ctx, whole, row, [step, *zeros]))
        return results

    final = for_loop(e, 0, length, starts, registers(operands), body)
    return [*values_at(e.index(length), final[: len(varying)]), *final[len(varying) :]]


def _like(e: Emitter, x: Value, other: Value) -> Value:
    return e.broadcast(x, other.shape)


def _element(ctx: Context, x: Value, step: Value) -> Value:
    """An element along the first axis."""
    return ctx.emitter.reshape(part(ctx, x, step, 1, 1, 0), x.shape[1:])
