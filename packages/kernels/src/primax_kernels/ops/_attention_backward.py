"""Derivatives of attention: a kernel for the queries, and one for keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import ShapeDtypeStruct, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._control import when
from .._grid import num_programs, program_id
from .._helpers import cdiv
from ..tpu import VMEM
from ._attention_blocks import (
    bias_spec,
    heads_behind,
    key_spec,
    query_spec,
    sizes_of,
    statistics_spec,
)
from ._attention_masks import Config, mask_of, rows_in, scores_of, weights_of
from ._common import accumulator, cast, filled, inside, product


class _Blocks:
    """Operands of both kernels, and their blocks.

    Args:
      queries, keys: dimensions of the grid with which they move.
    """

    def __init__(self, config: Config, residuals: Any, ct: Any, queries: int, keys: int):
        q, k, v, segments, bias, out, logs = residuals
        self.config, self.queries, self.keys = config, queries, keys
        self.wide = accumulator(typeof(q).dtype)
        self.has = segments is not None, bias is not None
        (bq, bk), d, width = config.block_backward, q.shape[-1], v.shape[-1]
        # Sums of the derivatives of each row's weights, weighted (Dao et al., 2022, appendix B).
        sums = lax.reduce_sum(cast(out, self.wide) * cast(ct, self.wide), (4,))
        if config.heads_first:
            sums = lax.expand_dims(sums, (4,))
        else:
            sums = lax.transpose(sums, (0, 2, 3, 1))
        key_block = lambda size: key_spec(config, bk, size, keys)
        statistics = statistics_spec(config, bq, queries)
        self.operands = [q, k, v, ct, logs, sums]
        self.specs = [
            query_spec(config, bq, d, queries), key_block(d), key_block(width),
            query_spec(config, bq, width, queries), statistics, statistics,
        ]  # fmt: skip
        if segments is not None:
            self.operands += [
                lax.expand_dims(segments[0], (2,)), lax.expand_dims(segments[1], (1,))
            ]  # fmt: skip
            self.specs += [
                BlockSpec((None, bq, 1), lambda *ids: (ids[0], ids[queries], 0)),
                BlockSpec((None, 1, bk), lambda *ids: (ids[0], 0, ids[keys])),
            ]
        if bias is not None:
            self.operands.append(bias)
            self.specs.append(bias_spec(bias.shape, bq, bk, (queries, keys)))
        self.key_specs = key_block(d), key_block(width)

    def read(self, refs: Any) -> tuple[list[Any], Any, Any]:
        """Blocks of q, k, v and the cotangent; the weights; the derivatives of the scores."""
        i, j = program_id(self.queries), program_id(self.keys)
        n, m = self.config.sizes
        rest = list(refs[6:])
        q, ct = rows_in(refs[0], i, n), rows_in(refs[3], i, n)
        k, v = rows_in(refs[1], j, m), rows_in(refs[2], j, m)
        logs, sums = (inside(r[...], (0, i, n)) for r in refs[4:6])
        if not self.config.heads_first:
            logs, sums = lax.expand_dims(logs, (1,)), lax.expand_dims(sums, (1,))
        pair = bias = None
        if self.has[0]:
            pair = rest.pop(0)[...], rest.pop(0)[...]
        if self.has[1]:
            bias = inside(rest.pop(0)[...], (1, j, m))
            bias = inside(bias, (0, i, n)) if bias.shape[0] > 1 else bias
        scores = scores_of(self.config, q, k, (i, j), pair, bias)
        weights = weights_of(scores, logs)
        slopes = weights * (product(ct, v, (1, 1), self.wide) - sums)
        if scores.capped is not None:
            slopes = slopes * (self.wide.type(1) - scores.capped * scores.capped)
        slopes = slopes * self.wide.type(self.config.scale)
        return [q, k, v, ct], cast(weights, q.dtype), cast(slopes, q.dtype)

    @property
    def n_refs(self) -> int:
        """Number of operands."""
        return len(self.operands)


def backward(config: Config, residuals: Any, ct: Any) -> tuple[Any, ...]:
    """Cotangents of queries, keys, values, segments (none) and the bias."""
    dq = _of_queries(config, residuals, ct)
    dk, dv = _of_keys(config, residuals, ct)
    segments, bias = residuals[3:5]
    db = None if bias is None else _of_bias(config, residuals, ct)
    return dq, dk, dv, None if segments is None else (None, None), db


def _summed(
    references: Any, terms: Callable[[], list[Any]], first: Any, last: Any, outs: Any
) -> None:
    """Add terms to scratch memory from the first step, and write them in the last."""

    @when(first)
    def _start() -> None:
        for ref in references:
            ref[...] = filled(ref.shape, 0, ref.dtype)

    for ref, term in zip(references, terms()):
        ref[...] += term

    @when(last)
    def _end() -> None:
        for ref, out in zip(references, outs):
            out[...] = cast(ref[...], out.dtype)


def _of_queries(config: Config, residuals: Any, ct: Any) -> Any:
    blocks = _Blocks(config, residuals, ct, queries=3, keys=4)
    q = residuals[0]
    batch, shared, group, d = sizes_of(config, q)
    (bq, bk), (n, m) = config.block_backward, config.sizes

    def kernel(*refs: Any) -> None:
        out, total = refs[blocks.n_refs :]

        def terms() -> list[Any]:
            (_, k, _, _), _, slopes = blocks.read(refs)
            return [product(slopes, k, (1, 0), blocks.wide)]

        j = program_id(4)
        _summed([total], terms, j == 0, j == num_programs(4) - 1, [out])

    return pallas_call(
        kernel, ShapeDtypeStruct(q.shape, typeof(q).dtype), name="flash_attention_queries",
        grid=(batch, shared, group, cdiv(n, bq), cdiv(m, bk)), in_specs=blocks.specs,
        out_specs=query_spec(config, bq, d, 3), scratch_shapes=[VMEM((bq, d), blocks.wide)],
    )(*blocks.operands)  # fmt: skip


def _of_keys(config: Config, residuals: Any, ct: Any) -> Any:
    blocks = _Blocks(config, residuals, ct, queries=4, keys=2)
    q, k, v = residuals[:3]
    batch, shared, group, d = sizes_of(config, q)
    (bq, bk), (n, m) = config.block_backward, config.sizes
    steps = cdiv(n, bq)

    def kernel(*refs: Any) -> None:
        *outs, dk, dv = refs[blocks.n_refs :]

        def terms() -> list[Any]:
            (q, _, _, ct), weights, slopes = blocks.read(refs)
            return [
                product(slopes, q, (0, 0), blocks.wide), product(weights, ct, (0, 0), blocks.wide)
            ]  # fmt: skip

        g, i = program_id(3), program_id(4)
        first = lax.bitwise_and(g == 0, i == 0)
        last = lax.bitwise_and(g == num_programs(3) - 1, i == num_programs(4) - 1)
        _summed([dk, dv], terms, first, last, outs)

    return pallas_call(
        kernel, tuple(ShapeDtypeStruct(x.shape, typeof(x).dtype) for x in (k, v)),
        name="flash_attention_keys", grid=(batch, shared, cdiv(m, bk), group, steps),
        in_specs=blocks.specs, out_specs=blocks.key_specs,
        scratch_shapes=[VMEM((bk, d), blocks.wide), VMEM((bk, v.shape[-1]), blocks.wide)],
    )(*blocks.operands)  # fmt: skip


def _of_bias(config: Config, residuals: Any, ct: Any) -> Any:
    """The cotangent of the bias: derivatives of all scores, summed where the bias was broadcast."""
    q, k, v, segments, bias, out, logs = residuals
    if config.heads_first:
        q, k, v, out, ct = (heads_behind(x) for x in (q, k, v, out, ct))
        logs = lax.squeeze(logs, (4,))
    wide = accumulator(typeof(q).dtype)
    pairs = (((4,), (3,)), ((0, 2), (0, 2)))

    def products(x: Any, y: Any) -> Any:
        """Products of rows, with the axes (batch, key head, head, query, key)."""
        result = lax.dot_general(x, y, pairs, preferred_element_type=wide)
        return lax.transpose(result, (0, 1, 3, 2, 4))

    def column(x: Any) -> Any:
        return lax.expand_dims(x, (4,))

    scores = products(q, k) * wide.type(config.scale)
    if config.soft_cap is not None:
        scores = lax.tanh(scores * wide.type(1 / config.soft_cap)) * wide.type(config.soft_cap)
    weights = lax.exp(scores + cast(bias, wide) - column(logs))
    mask = _whole_mask(config, segments)
    if mask is not None:
        mask = lax.broadcast_in_dim(mask, weights.shape, (0, 3, 4))
        weights = lax.select(mask, weights, filled(weights.shape, 0, wide))
    sums = lax.transpose(lax.reduce_sum(cast(out, wide) * cast(ct, wide), (4,)), (0, 2, 3, 1))
    slopes = weights * (products(ct, v) - column(sums))
    axes = tuple(a for a, n in enumerate(bias.shape) if n == 1 and slopes.shape[a] > 1)
    if axes:
        slopes = lax.expand_dims(lax.reduce_sum(slopes, axes), axes)
    return cast(slopes, typeof(bias).dtype)


def _whole_mask(config: Config, segments: Any) -> Any:
    """Pairs that count, with the axes (batch or 1, query, key), or ``None`` for all."""
    first = np.int32(0), np.int32(0)
    mask = mask_of(config, config.sizes, first, None, False)
    mask = None if mask is None else lax.expand_dims(mask, (0,))
    if segments is None:
        return mask
    query, key = segments
    shape = (query.shape[0], *config.sizes)
    same = lax.broadcast_in_dim(query, shape, (0, 1)) == lax.broadcast_in_dim(key, shape, (0, 2))
    if mask is None:
        return same
    return lax.bitwise_and(same, lax.broadcast_in_dim(mask, shape, (0, 1, 2)))
