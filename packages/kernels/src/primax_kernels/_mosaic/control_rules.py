"""Loops, conditions and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core import lax
from primax_core.extend import Jaxpr

from .._emission.loops import carry_at, counters_of
from .._emission.values import names, types_of
from .emitter import Emitter
from .prefetching import Loop
from .registry import Context, mosaic
from .shape_rules import dynamic_part, placed
from .types import BOOL, INT32
from .values import Value

# Booleans cross the borders of regions as integers: Mosaic carries no vectors of single bits.


def _outward(e: Emitter, values: Sequence[Value]) -> list[Value]:
    return [e.words(x) if x.dtype == BOOL else x for x in values]


def _inward(e: Emitter, values: Sequence[Value], like: Sequence[Value]) -> list[Value]:
    return [e.from_words(x, BOOL) if y.dtype == BOOL else x for x, y in zip(values, like)]


def _fresh(e: Emitter, like: Sequence[Value]) -> list[Value]:
    return [Value(e.name(), x.dtype, x.shape) for x in like]


def _results(name: str, like: Sequence[Value]) -> list[Value]:
    return [Value(f"{name}#{i}", x.dtype, x.shape) for i, x in enumerate(like)]


def _yield(e: Emitter, outs: Sequence[Value], like: Sequence[Value]) -> None:
    outs = [e.broadcast(x, a.shape) for x, a in zip(_outward(e, outs), like)]
    if outs:
        e.line(f"scf.yield {names(outs)} : {types_of(outs)}")


def for_loop(
    e: Emitter, length: int, carry: Sequence[Value],
    body: Callable[[Value, list[Value]], Sequence[Value]],
) -> list[Value]:  # fmt: skip
    """A loop with a known number of steps.

    Args:
      carry: values that each step replaces.
      body: from the number of the step and the carry to the next carry.
    """
    initial = _outward(e, carry)
    first, last, step = e.index(0), e.index(length), e.index(1)
    results = e.name() if initial else ""
    number = Value(e.name(), INT32, (), (0, max(length - 1, 0)))
    inside = _fresh(e, initial)
    head = f"scf.for {number.name} = {first.name} to {last.name} step {step.name}"
    if initial:
        pairs = ", ".join(f"{a.name} = {x.name}" for a, x in zip(inside, initial))
        head = f"{results}:{len(initial)} = {head} iter_args({pairs}) -> ({types_of(initial)})"
    e.line(f"{head} : i32 {{")
    with e.region():
        _yield(e, body(number, _inward(e, inside, carry)), inside)
    e.line("}")
    return _inward(e, _results(results, initial), carry)


def branch(
    e: Emitter, condition: Value, then: Callable[[], Sequence[Value]],
    otherwise: Callable[[], Sequence[Value]],
) -> list[Value]:  # fmt: skip
    """The results of one of two branches."""
    if condition.known is not None:
        return list(then() if condition.known else otherwise())
    at, name = len(e.lines), e.name()
    e.line("")  # the head, whose types are known after the branches
    outs: Sequence[Value] = []
    for i, part in enumerate((then, otherwise)):
        with e.region():
            outs = part()
            _yield(e, outs, _outward(e, outs))
        if i == 0:
            e.line("} else {")
    e.line("}")
    yielded = [Value("", INT32 if x.dtype == BOOL else x.dtype, x.shape) for x in outs]
    head = f"scf.if {condition.name}"
    if yielded:
        head = f"{name}:{len(yielded)} = {head} -> ({types_of(yielded)})"
    e.lines[at] = f"{e.lines[at]}{head} {{"
    return _inward(e, _results(name, yielded), outs)


@lax.cond_p.rule(mosaic)
def _cond(
    ctx: Context, index: Value, *operands: Any, branches: Sequence[Jaxpr], **_: Any
) -> list[Value]:
    e = ctx.emitter
    wide = [e.words(index) if index.dtype == BOOL else index]

    def choose(i: int) -> list[Value]:
        if i == len(branches) - 1:
            return ctx.lower(branches[i], operands)
        chosen = e.compare("le", wide[0], e.constant(i, wide[0].dtype))
        return branch(
            e, chosen, lambda: ctx.lower(branches[i], operands), lambda: choose(i + 1)
        )  # fmt: skip

    if index.dtype == BOOL and len(branches) == 2:
        return branch(
            e, index, lambda: ctx.lower(branches[1], operands),
            lambda: ctx.lower(branches[0], operands),
        )  # fmt: skip
    return choose(0)


@lax.while_p.rule(mosaic)
def _while(
    ctx: Context, *operands: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
    body_nconsts: int, **_: Any,
) -> list[Value]:  # fmt: skip
    e = ctx.emitter
    n = cond_nconsts + body_nconsts
    cond_consts, body_consts = operands[:cond_nconsts], operands[cond_nconsts:n]
    carry = operands[n:]
    initial = _outward(e, carry)
    results, types_ = e.name(), types_of(initial)
    before, after = _fresh(e, initial), _fresh(e, initial)
    pairs = ", ".join(f"{a.name} = {x.name}" for a, x in zip(before, initial))
    count = f"{results}:{len(initial)} = " if initial else ""
    e.line(f"{count}scf.while ({pairs}) : ({types_}) -> ({types_}) {{")
    with e.region():
        (condition,) = ctx.lower(cond_jaxpr, [*cond_consts, *_inward(e, before, carry)])
        passed = f" {names(before)} : {types_}" if before else ""
        e.line(f"scf.condition({condition.name}){passed}")
    e.line("} do {")
    e.line(f"^bb0({', '.join(f'{a.name}: {a.type}' for a in after)}):")
    with e.region():
        outs = ctx.lower(body_jaxpr, [*body_consts, *_inward(e, after, carry)])
        _yield(e, outs, initial)
    e.line("}")
    return _inward(e, _results(results, initial), carry)


@lax.scan_p.rule(mosaic)
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

    def arguments_at(number: Value) -> list[Any]:
        return [*consts, *values_at(number, [None] * len(varying)), *[None] * len(xs)]

    places = {num_consts + i: step for i, step in counters.items()}
    loop = Loop(ctx, jaxpr, length, arguments_at(e.index(0)), arguments_at, places)
    loop.before()

    def body(number: Value, current: list[Value]) -> list[Value]:
        before = e.replaced
        e.replaced = {**before, **loop.step(number)}
        carried = values_at(number, current[: len(varying)])
        step = e.subtract(e.index(length - 1), number) if reverse else number
        parts = [e.reshape(dynamic_part(e, x, step, 1, 0), x.shape[1:]) for x in xs]
        outs = ctx.lower(jaxpr, [*consts, *carried, *parts])
        e.replaced = before
        results = [e.broadcast(outs[i], carry[i].shape) for i in varying]
        for y, whole in zip(outs[num_carry:], current[len(varying) :]):
            row = e.reshape(y, (1, *whole.shape[1:]))
            results.append(placed(e, whole, row, [step] + [e.index(0)] * (len(whole.shape) - 1)))
        return results

    final = for_loop(e, length, starts, body)
    loop.after()
    return [*values_at(e.index(length), final[: len(varying)]), *final[len(varying) :]]
