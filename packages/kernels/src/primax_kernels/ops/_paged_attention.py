"""Attention of one query for each sequence, whose keys are in pages."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec, PrefetchScalarGridSpec
from .._call import pallas_call
from .._control import when
from .._grid import num_programs, program_id
from .._typing import ArrayLike
from ..tpu import VMEM
from ._attention_masks import LOWEST
from ._common import (
    accumulator,
    cast,
    filled,
    operand,
    positions,
    positive,
    product,
    row_max,
    row_sum,
    same_dtype,
)

_NAME = "paged_attention"


class _Config(NamedTuple):
    scale: float
    soft_cap: float | None


def paged_attention(
    q: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    lengths: ArrayLike,
    page_indices: ArrayLike,
    *,
    scale: float | None = None,
    soft_cap: float | None = None,
) -> Any:
    """Attention of one query for each sequence to keys in pages (Kwon et al., 2023).

    The indices of the pages are prefetched: a step reads one page of one sequence, and no
    contiguous copy of the keys is made on a GPU.

    Args:
      q: queries of shape ``(batch, heads, d)``.
      k_pages, v_pages: pages of shape ``(key heads, pages, page size, d)``. The number of key heads
        divides that of heads.
      lengths: number of keys of each sequence, ``int32`` of shape ``(batch,)``.
      page_indices: the pages of each sequence in order, ``int32`` of shape ``(batch, n)``. Entries
        beyond the length are not used.
      scale: factor of the scores, by default ``1 / sqrt(d)``.
      soft_cap: replace scores ``s`` by ``soft_cap * tanh(s / soft_cap)``.

    Returns:
      Array with the shape and dtype of ``q``. A sequence of length 0 has the result 0.

    Raises:
      TypeError: for other dtypes.
      ValueError: for shapes that do not match.

    Lengths beyond ``n * page size`` count as this number, and indices beyond the pages as the last.
    Forward and reverse derivatives are those of operations on arrays.

    >>> import numpy as np
    >>> pages = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
    >>> query, order = np.zeros((1, 1, 1), np.float32), np.array([[1, 0]], np.int32)
    >>> paged_attention(query, pages, pages, np.array([3], np.int32), order)
    Array([[[1.6666666]]], dtype=float32)
    """
    avals = {
        "q": operand(_NAME, "q", q, rank=3),
        "k_pages": operand(_NAME, "k_pages", k_pages, rank=4),
        "v_pages": operand(_NAME, "v_pages", v_pages, rank=4),
    }
    same_dtype(_NAME, **avals)
    kinds = (np.dtype(np.int32),)
    operand(_NAME, "lengths", lengths, rank=1, kinds=kinds)
    operand(_NAME, "page_indices", page_indices, rank=2, kinds=kinds)
    (batch, heads, d), pages = q.shape, k_pages.shape
    if v_pages.shape != pages:
        raise ValueError(
            f"{_NAME}: k_pages and v_pages have different shapes {pages} and {v_pages.shape}"
        )
    if pages[3] != d:
        raise ValueError(f"{_NAME}: q and k_pages have a different last axis: {d} and {pages[3]}")
    if not pages[0] or heads % pages[0]:
        raise ValueError(
            f"{_NAME}: the number of key heads divides that of heads, got {pages[0]} and {heads}"
        )
    if lengths.shape != (batch,) or page_indices.shape[0] != batch:
        raise ValueError(
            f"{_NAME}: lengths and page_indices have an entry for each of {batch} sequences, got "
            f"the shapes {lengths.shape} and {page_indices.shape}"
        )
    config = _Config(
        1 / math.sqrt(max(d, 1)) if scale is None else positive(_NAME, "scale", scale),
        None if soft_cap is None else positive(_NAME, "soft_cap", soft_cap),
    )
    return _paged(config, q, k_pages, v_pages, lengths, page_indices)


@functools.partial(jit, static_argnums=0)
def _paged(config: _Config, q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
    (batch, heads, d), (shared, _, size, _) = q.shape, k.shape
    dtype, wide, steps = typeof(q).dtype, accumulator(typeof(q).dtype), pages.shape[1]
    if 0 in (*q.shape, *k.shape, steps):
        return filled(q.shape, 0, dtype)
    group = heads // shared
    # Pages beyond the length may have any index; the first page is read instead, and masked.
    used = lax.broadcasted_iota(np.int32, (batch, steps), 1) * np.int32(size)
    used = used < lax.broadcast_in_dim(lengths, (batch, steps), (0,))
    pages = lax.select(used, pages, filled(pages.shape, 0, np.int32))

    def kernel(
        pages: Any, lengths: Any, q_ref: Any, k_ref: Any, v_ref: Any, out: Any, top: Any,
        total: Any, sums: Any,
    ) -> None:  # fmt: skip
        j = program_id(2)

        @when(j == 0)
        def _start() -> None:
            top[...] = filled(top.shape, LOWEST, wide)
            total[...] = filled(total.shape, 0, wide)
            sums[...] = filled(sums.shape, 0, wide)

        scores = product(q_ref[...], k_ref[...], (1, 1), wide) * wide.type(config.scale)
        if config.soft_cap is not None:
            scores = lax.tanh(scores * wide.type(1 / config.soft_cap)) * wide.type(config.soft_cap)
        length = lengths[program_id(0)]
        mask = positions(scores.shape, 1, j * np.int32(size)) < length
        scores = lax.select(mask, scores, filled(scores.shape, LOWEST, wide))
        largest = lax.max(top[...], row_max(scores))
        weights = lax.exp(scores - largest)
        weights = lax.select(mask, weights, filled(weights.shape, 0, wide))
        factor = lax.exp(top[...] - largest)
        total[...] = total[...] * factor + row_sum(weights)
        # Elements of pages beyond the length may be NaN, whose product with 0 would be, too.
        values = v_ref[...]
        keep = positions(values.shape, 0, j * np.int32(size)) < length
        values = lax.select(keep, values, filled(values.shape, 0, dtype))
        sums[...] = sums[...] * factor + product(cast(weights, dtype), values, (1, 0), wide)
        top[...] = largest

        @when(j == num_programs(2) - 1)
        def _end() -> None:
            whole = total[...]
            whole = lax.select(whole == wide.type(0), filled(whole.shape, 1, wide), whole)
            out[...] = cast(sums[...] / whole, dtype)

    rows = BlockSpec((None, None, group, d), lambda b, h, j, pages, lengths: (b, h, 0, 0))
    page = BlockSpec((None, None, size, d), lambda b, h, j, pages, lengths: (h, pages[b, j], 0, 0))
    result = pallas_call(
        kernel, ShapeDtypeStruct((batch, shared, group, d), dtype), name=_NAME,
        grid_spec=PrefetchScalarGridSpec(
            num_scalar_prefetch=2, grid=(batch, shared, steps), in_specs=[rows, page, page],
            out_specs=rows,
            scratch_shapes=[VMEM((group, 1), wide), VMEM((group, 1), wide), VMEM((group, d), wide)],
        ),
    )(pages, lengths, lax.reshape(q, (batch, shared, group, d)), k, v)  # fmt: skip
    return lax.reshape(result, q.shape)
