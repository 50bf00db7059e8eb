"""Sparse rules of jit, loops and conditionals, whose parameters are jaxprs.

Sparse arrays are passed as pytrees. Their index flags are dropped, so that every iteration of a
loop and every branch has the same pytree structure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import jit, lax
from primax_core.extend import Jaxpr, jit_p
from primax_core.extend.runtime import register_cache

from ._bcoo import BCOO
from ._interpreter import any_format, evaluate, is_sparse, sparse_rule
from ._operators import SparseArray


def _plain(values: Sequence[Any]) -> list[Any]:
    return [x.without_flags() if isinstance(x, SparseArray) else x for x in values]


@functools.lru_cache(maxsize=512)
def _compiled(jaxpr: Jaxpr, name: str) -> Callable[..., list[Any]]:
    def run(*values: Any) -> list[Any]:
        return evaluate(jaxpr, values)

    run.__name__ = name
    return jit(run)


register_cache(_compiled.cache_clear)


@jit_p.rule(sparse_rule)
@any_format
def _sparse_jit(*values: Any, jaxpr: Jaxpr, name: str, **_: Any) -> list[Any]:
    return _compiled(jaxpr, name)(*values)


@lax.cond_p.rule(sparse_rule)
@any_format
def _sparse_cond(index: Any, *values: Any, branches: Sequence[Jaxpr]) -> list[Any]:
    runs = [lambda *vs, b=branch: _plain(evaluate(b, vs)) for branch in branches]
    out: list[Any] = lax.switch(lax.convert_element_type(index, np.int32), runs, *_plain(values))
    return out


def _batched(x: Any) -> Any:
    """The array with at least one batch dimension."""
    if getattr(x, "n_batch", 0):
        return x
    bcoo: BCOO = x.to_bcoo()
    return bcoo.update_layout(n_batch=1)


@lax.scan_p.rule(sparse_rule)
@any_format
def _sparse_scan(
    *values: Any,
    jaxpr: Jaxpr,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> list[Any]:
    consts, rest = values[:num_consts], _plain(values[num_consts:])
    carry, xs = rest[:num_carry], rest[num_carry:]
    # The body gets one batch element of a sparse array per iteration.
    xs = [_batched(x) if is_sparse(x) else x for x in xs]

    def body(carry: Any, xs: Any) -> tuple[Any, Any]:
        outs = _plain(evaluate(jaxpr, [*consts, *carry, *xs]))
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(body, carry, xs, length, reverse, unroll)
    return [*carry, *ys]


@lax.while_p.rule(sparse_rule)
@any_format
def _sparse_while(
    *values: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int
) -> list[Any]:
    cond_consts, rest = values[:cond_nconsts], values[cond_nconsts:]
    body_consts, init = rest[:body_nconsts], _plain(rest[body_nconsts:])

    def going(state: Any) -> Any:
        (condition,) = evaluate(cond_jaxpr, [*cond_consts, *state])
        return condition

    def step(state: Any) -> list[Any]:
        return _plain(evaluate(body_jaxpr, [*body_consts, *state]))

    out: list[Any] = lax.while_loop(going, step, init)
    return out
