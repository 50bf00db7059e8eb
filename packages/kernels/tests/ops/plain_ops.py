"""The functions of `primax_kernels.ops` in plain `lax` operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax

F32 = np.float32


def column(x: Any) -> Any:
    return lax.expand_dims(x, (x.ndim,))


def summed(x: Any) -> Any:
    """Sums of the last axis, which is kept."""
    return column(lax.reduce_sum(x, (x.ndim - 1,)))


def relu(x: Any, bias: Any) -> Any:
    return lax.max(x + bias, F32(0))


def matmul(a: Any, b: Any, bias: Any) -> Any:
    return relu(lax.dot(a, b), lax.broadcast(bias, (a.shape[0],)))


def softmax(x: Any) -> Any:
    e = lax.exp(x - column(lax.reduce_max(x, (x.ndim - 1,))))
    return e / summed(e)


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    x = x - summed(x) / x.shape[-1]
    return rms_norm(x, scale) + lax.expand_dims(bias, (0,))


def rms_norm(x: Any, scale: Any) -> Any:
    inverse = lax.rsqrt(summed(x * x) / x.shape[-1] + 1e-6)
    return x * inverse * lax.expand_dims(scale, (0,))


def mask_of(
    queries: int, keys: int, causal: bool = False, window: Any = None, segment_ids: Any = None,
    query_offset: int = 0,
) -> np.ndarray:  # fmt: skip
    """Pairs that count, with the axes (batch or 1, query, key)."""
    i, j = np.arange(queries)[:, None] + query_offset, np.arange(keys)[None]
    mask = np.ones((1, queries, keys), bool)
    if causal:
        mask = mask & (j <= i)
    if window is not None:
        mask = mask & (j >= i - window[0]) & (j <= i + window[1])
    if segment_ids is not None:
        first, second = segment_ids
        mask = mask & (first[:, :, None] == second[:, None])
    return mask


def attention(
    q: Any, k: Any, v: Any, bias: Any = None, soft_cap: float | None = None, **masks: Any
) -> Any:
    """Attention with the axes (batch, length, heads, d), and shared key heads."""
    batch, n, heads, d = q.shape
    m, shared = k.shape[1:3]
    q = lax.reshape(q, (batch, n, shared, heads // shared, d))
    scores = lax.dot_general(q, k, (((4,), (3,)), ((0, 2), (0, 2))))
    scores = lax.transpose(scores, (0, 1, 3, 2, 4)) * q.dtype.type(1 / np.sqrt(d))
    if soft_cap is not None:
        scores = soft_cap * lax.tanh(scores / soft_cap)
    if bias is not None:
        wide = lax.broadcast_in_dim(bias, (batch, heads, n, m), (0, 1, 2, 3))
        scores = scores + lax.reshape(wide, scores.shape)
    mask = np.broadcast_to(mask_of(n, m, **masks)[:, None, None], scores.shape)
    e = lax.select(mask, lax.exp(scores), lax.full(scores.shape, 0, scores.dtype))
    total = summed(e)
    weights = e / lax.select(total == 0, lax.full(total.shape, 1, e.dtype), total)
    out = lax.dot_general(weights, v, (((4,), (1,)), ((0, 1), (0, 2))))
    return lax.reshape(lax.transpose(out, (0, 3, 1, 2, 4)), (batch, n, heads, v.shape[-1]))


def paged_attention(q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> np.ndarray:
    heads, shared = q.shape[1], k.shape[0]
    out = np.zeros(q.shape)
    for b, length in enumerate(lengths):
        for h in range(heads):
            rows = [
                x[h * shared // heads, np.clip(pages[b], 0, x.shape[1] - 1)]
                .reshape(-1, q.shape[2])[:length] for x in (k, v)
            ]  # fmt: skip
            if len(rows[0]):
                e = np.exp(rows[0] @ q[b, h] / np.sqrt(q.shape[2]))
                out[b, h] = (e / e.sum()) @ rows[1]
    return out


def grouped_matmul(lhs: Any, rhs: Any, sizes: np.ndarray) -> Any:
    groups = len(sizes)
    own = np.concatenate([np.repeat(np.arange(groups), sizes), [groups] * lhs.shape[0]])
    hit = (own[: lhs.shape[0], None, None] == np.arange(groups)[None, :, None]).astype(lhs.dtype)
    products = lax.dot_general(lhs, rhs, (((1,), (1,)), ((), ())))
    return lax.reduce_sum(products * hit, (1,))


def rope(x: np.ndarray, positions: np.ndarray, interleaved: bool) -> np.ndarray:
    d = x.shape[-1]
    angles = positions[..., None, None] * 10000.0 ** (-2 * np.arange(d // 2) / d)
    parts = x.reshape(*x.shape[:-1], -1, 2) if interleaved else x.reshape(*x.shape[:-1], 2, -1)
    axis = -1 if interleaved else -2
    a, b = np.moveaxis(parts, axis, 0)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis).reshape(x.shape)


def cross_entropy(logits: Any, labels: np.ndarray, z_loss: float = 0.0) -> Any:
    logs = lax.log(lax.reduce_sum(lax.exp(logits), (1,)))
    hit = (labels[:, None] == np.arange(logits.shape[1])).astype(logits.dtype)
    losses = logs - lax.reduce_sum(logits * hit, (1,)) + logs * logs * F32(z_loss)
    return losses * (labels >= 0).astype(F32)


def linear_recurrence(a: Any, b: Any, initial: Any, reverse: bool = False) -> Any:
    """The recurrence along axis 1 of 3, position by position."""

    def at(x: Any, t: int) -> Any:
        return lax.slice_in_dim(x, t, t + 1, axis=1)

    h, length = lax.expand_dims(initial, (1,)), a.shape[1]
    states = {}
    for t in reversed(range(length)) if reverse else range(length):
        states[t] = h = at(a, t) * h + at(b, t)
    return lax.concatenate([states[t] for t in range(length)], 1)
