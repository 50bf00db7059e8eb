"""Checks of batching rules against a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._api.jit import jit
from ..._api.vmap import vmap
from ..._ir.rules import MissingRule
from ..._trace.core import typeof
from ...lax.conversion import convert
from ..calls import Call, Failure, NotApplicable, draw
from ..tolerance import mismatches

_SIZE = 2


def check_batching(get: Callable[..., Call]) -> None:
    """``vmap`` over every axis of every operand equals a loop over the examples.

    The axes are those of :func:`_mapped_axes`.
    """
    call = get()
    if not call.drawn:
        raise NotApplicable("no operand is drawn")
    examples = [_example(call, k) for k in range(_SIZE)]
    ways = list(_mapped_axes(call))
    mixed = [
        [[e if d is not None else a for a, e, d in zip(call.args, ex, dims)] for ex in examples]
        for dims in ways
    ]
    batches = [
        [_stacked([args[i] for args in rows], d) for i, d in enumerate(dims)]
        for rows, dims in zip(mixed, ways)
    ]

    def all_ways(batches):  # one compilation for all cases
        return [_mapped(call, dims, batch) for dims, batch in zip(ways, batches)]

    for dims, rows, results in zip(ways, mixed, jit(all_ways)(batches)):
        _same(call, results, [call.fun(*args) for args in rows], _shown(call, dims))


def _shown(call: Call, dims: Sequence) -> str:
    return f"mapped over axes {dims} of {len(call.args)} operands"


def _mapped(call: Call, dims: Sequence, batch: Sequence) -> list:
    try:
        return list(vmap(call.fun, tuple(dims))(*batch))
    except MissingRule:
        raise
    except Exception as e:
        raise Failure(f"{_shown(call, dims)}: {type(e).__name__}: {e}") from e


def _same(call: Call, results: Sequence, singles: Sequence[Sequence], how: str) -> None:
    for k, expected in enumerate(singles):
        text = mismatches([np.asarray(f)[k] for f in results], expected, call.sample.tolerance)
        if text:
            raise Failure(f"{how}, example {k}: {text}")
    for i, (f, one) in enumerate(zip(results, singles[0])):
        a, b = typeof(f), typeof(one)
        if a.dtype != b.dtype or a.weak_type != b.weak_type:
            raise Failure(f"{how}: result {i} has type {a}, that of one example {b}")


def check_nested(get: Callable[..., Call]) -> None:
    """``vmap`` of ``vmap``, over different operands if there are several."""
    call = get()
    if not call.drawn:
        raise NotApplicable("no operand is drawn")
    n = len(call.args)
    inner = [0 if i == call.drawn[0] else None for i in range(n)]
    outer = [0 if i == call.drawn[-1] else None for i in range(n)]
    first, last = call.drawn[0], call.drawn[-1]
    grid = [[list(call.args) for _ in range(_SIZE)] for _ in range(_SIZE)]
    rng = np.random.default_rng(call.seed + 9)
    with call.mode():
        if first == last:
            cells = [[_drawn(call, first, rng) for _ in range(_SIZE)] for _ in range(_SIZE)]
            for a in range(_SIZE):
                for b in range(_SIZE):
                    grid[a][b][first] = cells[a][b]
            batch = list(call.args)
            batch[first] = np.stack([np.stack(row) for row in cells])
        else:
            xs = [_drawn(call, first, rng) for _ in range(_SIZE)]
            ys = [_drawn(call, last, rng) for _ in range(_SIZE)]
            for a in range(_SIZE):
                for b in range(_SIZE):
                    grid[a][b][first], grid[a][b][last] = xs[b], ys[a]
            batch = list(call.args)
            batch[first], batch[last] = np.stack(xs), np.stack(ys)
    results = jit(vmap(vmap(call.fun, tuple(inner)), tuple(outer)))(*batch)
    for a in range(_SIZE):
        for b in range(_SIZE):
            text = mismatches([np.asarray(f)[a, b] for f in results], call.fun(*grid[a][b]),
                              call.sample.tolerance)  # fmt: skip
            if text:
                raise Failure(f"example {a, b}: {text}")


def _drawn(call: Call, index: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(draw(call.sample.operands[index], rng, call.double))


def _example(call: Call, k: int) -> list:
    return call.draw(np.random.default_rng(call.seed + 100 + k))


def _stacked(values: Sequence, dim: int | None) -> Any:
    if dim is None:
        return values[0]
    stacked = np.stack([np.asarray(v) for v in values], dim)
    return convert(stacked, stacked.dtype, typeof(values[0]).weak_type)


def _mapped_axes(call: Call) -> Iterator[list[int | None]]:
    """Mapped axes to check: each axis of each operand alone, then all operands at once.

    With several operands, only the first and the last axis of each are used.
    """
    n = len(call.args)
    ranks = {i: np.ndim(call.args[i]) for i in call.drawn}
    for i, rank in ranks.items():
        for axis in range(rank + 1) if len(ranks) == 1 else sorted({0, rank}):
            yield [axis if j == i else None for j in range(n)]
    if len(ranks) > 1:
        yield [0 if j in ranks else None for j in range(n)]
        yield [ranks[j] * (j % 2 == 0) if j in ranks else None for j in range(n)]
