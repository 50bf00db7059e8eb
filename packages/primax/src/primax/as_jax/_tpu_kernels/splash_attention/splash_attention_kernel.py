"""Functions that make attention from a mask."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.tree_util import register_pytree_node

from .splash_attention_mask import Mask, MultiHeadMask, NumpyMask

DEFAULT_MASK_VALUE: Final = -0.7 * float(np.finfo(np.float32).max)


class SegmentIds(NamedTuple):
    """Numbers of segments: a query sees only the keys of its own segment."""

    q: Any
    kv: Any


class QKVLayout(enum.IntEnum):
    """The order of the last two axes in the memory of a TPU."""

    HEAD_DIM_MINOR = enum.auto()
    SEQ_MINOR = enum.auto()


@dataclass(frozen=True, kw_only=True)
class BlockSizes:
    """Sizes of blocks of the reference's kernel; the results do not depend on them."""

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Blocks of 128."""
        return cls(block_q=128, block_kv=128)


class SplashAttentionKernel:
    """Attention with a mask: ``kernel(q, k, v, segment_ids)`` for one example.

    Shapes: ``q`` has (heads, queries, size), ``k`` and ``v`` have (key heads, keys, size), or
    (keys, size) for one head of keys. Queries are not scaled. The object is a pytree.
    """

    def __init__(self, mask: Any, **options: Any) -> None:
        self.mask = mask
        self.options = options

    def __call__(self, q: Any, k: Any, v: Any, segment_ids: SegmentIds | None = None) -> Any:
        """Apply the attention; with ``save_residuals`` also return the tuple of the log of the
        sums of exponentials."""
        return _attention(self.mask, q, k, v, segment_ids, **self.options)


def _flatten(kernel: SplashAttentionKernel) -> tuple[tuple[Any], tuple[Any, ...]]:
    return (kernel.mask,), tuple(sorted(kernel.options.items()))


def _unflatten(options: tuple[Any, ...], children: Any) -> SplashAttentionKernel:
    return SplashAttentionKernel(*children, **dict(options))


register_pytree_node(SplashAttentionKernel, _flatten, _unflatten)


def _attention(
    mask: Any,
    q: Any,
    k: Any,
    v: Any,
    segment_ids: SegmentIds | None,
    *,
    save_residuals: bool,
    mask_value: float,
    attn_logits_soft_cap: float | None,
) -> Any:
    k, v = (lax.expand_dims(x, (0,)) if x.ndim == 2 else x for x in (k, v))
    heads, key_heads = q.shape[0], k.shape[0]
    if heads % key_heads:
        raise ValueError(f"{key_heads} heads of keys do not divide {heads} heads of queries")
    grouped = lax.reshape(q, (key_heads, heads // key_heads, *q.shape[1:]))
    scores = lax.dot_general(
        grouped, k, (((3,), (2,)), ((0,), (0,))), preferred_element_type=np.float32
    )
    if attn_logits_soft_cap is not None:
        cap = np.float32(attn_logits_soft_cap)
        scores = lax.mul(lax.tanh(lax.div(scores, cap)), cap)
    seen = lax.reshape(mask, scores.shape)
    if segment_ids is not None:
        own = lax.eq(
            lax.broadcast_in_dim(segment_ids.q, scores.shape, (2,)),
            lax.broadcast_in_dim(segment_ids.kv, scores.shape, (3,)),
        )
        seen = lax.bitwise_and(seen, own)
    scores = lax.select(seen, scores, lax.full_like(scores, mask_value))
    largest = lax.stop_gradient(lax.reduce_max(scores, (3,)))
    exponentials = lax.exp(lax.sub(scores, lax.broadcast_in_dim(largest, scores.shape, (0, 1, 2))))
    sums = lax.reduce_sum(exponentials, (3,))
    weights = lax.div(exponentials, lax.broadcast_in_dim(sums, scores.shape, (0, 1, 2)))
    out = lax.dot_general(
        weights,
        lax.convert_element_type(v, np.float32),
        (((3,), (1,)), ((0,), (0,))),
        preferred_element_type=np.float32,
    )
    result = lax.convert_element_type(lax.reshape(out, (heads, *out.shape[2:])), q.dtype)
    if save_residuals:
        return result, (lax.reshape(lax.add(largest, lax.log(sums)), (heads, q.shape[1])),)
    return result


def _make(
    mask: Any,
    *,
    block_sizes: BlockSizes | None = None,
    save_residuals: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> SplashAttentionKernel:
    if head_shards != 1 or q_seq_shards != 1:
        raise ValueError(
            f"attention is not divided by hand here (head_shards={head_shards}, "
            f"q_seq_shards={q_seq_shards}): leave both at 1, and place the operands on a mesh with "
            "jax.device_put, which divides the operations"
        )
    if not isinstance(mask, Mask):
        array = np.asarray(mask)
        mask = MultiHeadMask([NumpyMask(part) for part in array])
    return SplashAttentionKernel(
        mask[:, :, :],
        save_residuals=save_residuals,
        mask_value=mask_value,
        attn_logits_soft_cap=attn_logits_soft_cap,
    )


def make_splash_mha(mask: Any, **options: Any) -> SplashAttentionKernel:
    """Return attention with a key head for each query head, or for a group of them.

    Args:
      mask: a :class:`MultiHeadMask`, or an array of shape (heads, queries, keys).
      options: those of the reference; ``mask_value``, ``attn_logits_soft_cap`` and
        ``save_residuals`` change results, the others concern its kernel for TPUs.

    Raises:
      ValueError: for ``head_shards`` or ``q_seq_shards`` above 1.
    """
    return _make(mask, **options)


def make_splash_mqa(mask: Any, **options: Any) -> SplashAttentionKernel:
    """Return attention of all query heads on one head of keys, of shape (keys, size)."""
    return _make(mask, **options)


make_splash_mha_single_device = make_splash_mha
make_splash_mqa_single_device = make_splash_mqa
