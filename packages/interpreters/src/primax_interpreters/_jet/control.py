"""Calls, conditionals and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core.extend import (
    Jaxpr,
    Zero,
    eval_jaxpr,
    instantiate,
    jit_p,
    remat_p,
    stage,
)
from primax_core.extend.traces import call_jaxpr, derive_from_jaxpr
from primax_core.lax import cond_p, scan_p, while_p

from .interpreter import Mask, given_terms, mask_of, taylor, taylor_jaxpr, term_avals


def _masks(series: Sequence[Sequence]) -> tuple[Mask, ...]:
    return tuple(mask_of([None if type(t) is Zero else t for t in ts]) for ts in series)


def _nonzero(series: Sequence[Sequence]) -> list:
    return [t for ts in series for t in ts if type(t) is not Zero]


def _unpacked(values: Sequence, out_masks: Sequence[Mask], order: int) -> tuple[list, list]:
    """Results and their derivatives, which follow them in ``values``."""
    n = len(out_masks)
    outs = list(values[:n])
    derivatives = given_terms(values[n:], out_masks)
    return outs, [
        [Zero.like(o) if t is None else t for t in terms or [None] * order]
        for o, terms in zip(outs, derivatives)
    ]


def _order(series: Sequence[Sequence]) -> int:
    return len(series[0])


@jit_p.rule(taylor)
def _jit_taylor(primals, series, *, jaxpr, **params):
    program, out_masks = taylor_jaxpr(jaxpr, _masks(series), _order(series))
    values = call_jaxpr(program, [*primals, *_nonzero(series)], params)
    return _unpacked(values, out_masks, _order(series))


@remat_p.rule(taylor)
def _remat_taylor(primals, series, *, jaxpr, **params):
    program, out_masks = taylor_jaxpr(jaxpr, _masks(series), _order(series))
    values = remat_p.bind(*primals, *_nonzero(series), jaxpr=program, **params)
    return _unpacked(values, out_masks, _order(series))


@cond_p.rule(taylor)
def _cond_taylor(primals, series, *, branches, **params):
    order, masks = _order(series), _masks(series[1:])
    out_masks = [taylor_jaxpr(b, masks, order)[1] for b in branches]
    joined = tuple(_joined(ms) for ms in zip(*out_masks))
    programs = tuple(taylor_jaxpr(b, masks, order, joined)[0] for b in branches)
    values = cond_p.bind(*primals, *_nonzero(series[1:]), branches=programs, **params)
    return _unpacked(values, joined, order)


def _joined(masks: Sequence[Mask]) -> Mask:
    moving = [m for m in masks if m is not None]
    return tuple(any(bs) for bs in zip(*moving)) if moving else None


# Loops. A carry that moves has all of its derivatives.


def _full(moves: Sequence[bool], order: int) -> tuple[Mask, ...]:
    return tuple((True,) * order if m else None for m in moves)


def _all_terms(series: Sequence[Sequence], masks: Sequence[Mask]) -> list[list]:
    """Derivatives of each operand by its mask, as arrays."""
    return [
        [] if m is None else [instantiate(t) for t, b in zip(ts, m) if b]
        for ts, m in zip(series, masks)
    ]


def _settled(
    carry: Sequence[bool], program: Callable[[tuple[Mask, ...]], Any], n_carry: int, order: int
) -> tuple[Mask, ...]:
    """The masks of the carries, given those that move at first."""

    def grow(now):
        return [m is not None for m in program(_full(now, order))[1][:n_carry]]

    moves = list(carry)
    while (grown := [a or b for a, b in zip(moves, grow(moves))]) != moves:
        moves = grown
    return _full(moves, order)


def _grouped(groups: Sequence[Sequence[int]], masks: Sequence[Mask], n: int) -> list[int]:
    """Positions of each group followed by its derivatives, which follow all ``n`` values."""
    places: dict[int, list[int]] = {}
    at = n
    for i, m in enumerate(masks):
        count = sum(m) if m is not None else 0
        places[i] = list(range(at, at + count))
        at += count
    order: list[int] = []
    for group in groups:
        order.extend(group)
        for i in group:
            order.extend(places[i])
    return order


def _split(values: Sequence, first: int, second: int) -> tuple[Sequence, Sequence, Sequence]:
    return values[:first], values[first : first + second], values[first + second :]


def _reordered(body: Jaxpr, what: str, key: Any, ins: list[int], outs: list[int]) -> Jaxpr:
    return derive_from_jaxpr(body, what, key, lambda: _permuted(body, ins, outs))


def _permuted(jaxpr: Jaxpr, ins: Sequence[int], outs: Sequence[int]) -> Jaxpr:
    """The jaxpr with its arguments and results in another order."""
    return jaxpr.replace(
        invars=[jaxpr.invars[i] for i in ins], outvars=[jaxpr.outvars[i] for i in outs]
    )


@scan_p.rule(taylor)
def _scan_taylor(primals, series, *, jaxpr, num_consts, num_carry, **params):
    order, masks = _order(series), _masks(series)
    consts_m, carry_m, xs_m = _split(masks, num_consts, num_carry)
    n_in, n_out = len(jaxpr.invars), len(jaxpr.outvars)

    def program(carry, force=None):
        return taylor_jaxpr(jaxpr, (*consts_m, *carry, *xs_m), order, force)

    carry_m = _settled([m is not None for m in carry_m], program, num_carry, order)
    none = (None,) * (n_out - num_carry)
    body, out_masks = program(carry_m, (*carry_m, *none))
    masks = (*consts_m, *carry_m, *xs_m)
    in_groups = _split(range(n_in), num_consts, num_carry)
    out_groups = (range(num_carry), range(num_carry, n_out))
    back = _grouped(out_groups, out_masks, n_out)
    body = _reordered(
        body, "scan jet order", (num_consts, num_carry), _grouped(in_groups, masks, n_in), back
    )
    terms = _all_terms(series, masks)
    operands: list[Any] = []
    for group in in_groups:
        operands.extend(primals[i] for i in group)
        operands.extend(t for i in group for t in terms[i])
    outs = scan_p.bind(
        *operands, jaxpr=body, num_consts=num_consts + _count(consts_m),
        num_carry=num_carry + _count(carry_m), **params,
    )  # fmt: skip
    values: list[Any] = [None] * len(back)
    for place, out in zip(back, outs):
        values[place] = out
    return _unpacked(values, out_masks, order)


def _count(masks: Sequence[Mask]) -> int:
    return sum(sum(m) for m in masks if m is not None)


@while_p.rule(taylor)
def _while_taylor(primals, series, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **params):
    order, masks = _order(series), _masks(series)
    _, consts_m, carry_m = _split(masks, cond_nconsts, body_nconsts)
    n_carry, n_in = len(body_jaxpr.outvars), len(body_jaxpr.invars)

    def program(carry, force=None):
        return taylor_jaxpr(body_jaxpr, (*consts_m, *carry), order, force)

    carry_m = _settled([m is not None for m in carry_m], program, n_carry, order)
    body, _ = program(carry_m, carry_m)
    body_masks = (*consts_m, *carry_m)
    groups = (range(body_nconsts), range(body_nconsts, n_in))
    ins = _grouped(groups, body_masks, n_in)
    body = _reordered(body, "while jet order", body_nconsts, ins, list(range(len(body.outvars))))
    test = derive_from_jaxpr(
        cond_jaxpr, "while jet cond", carry_m, lambda: _value_test(cond_jaxpr, body_jaxpr, carry_m)
    )
    cond_consts, body_consts, init = _split(primals, cond_nconsts, body_nconsts)
    terms = _all_terms(series[cond_nconsts:], body_masks)
    const_terms = [t for ts in terms[:body_nconsts] for t in ts]
    carry_terms = [t for ts in terms[body_nconsts:] for t in ts]
    outs = while_p.bind(
        *cond_consts, *body_consts, *const_terms, *init, *carry_terms, cond_jaxpr=test,
        body_jaxpr=body, cond_nconsts=cond_nconsts, body_nconsts=body_nconsts + len(const_terms),
        **params,
    )  # fmt: skip
    return _unpacked(outs, carry_m, order)


def _value_test(cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, carry_m: tuple[Mask, ...]) -> Jaxpr:
    """The condition of the values; it ignores the derivatives that follow them."""
    n = len(cond_jaxpr.invars)
    extra = term_avals(body_jaxpr.out_avals, carry_m)
    avals = [*cond_jaxpr.in_avals, *extra]
    return stage(lambda *a: eval_jaxpr(cond_jaxpr, a[:n]), avals, parent=None)
