"""Attention with masks under the reference's names for TPUs, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import primax
from primax.as_jax._tpu_kernels.splash_attention import (
    splash_attention_kernel as kernels,
    splash_attention_mask as masks,
)

rng = np.random.default_rng(0)
Q = rng.normal(size=(4, 6, 8)).astype(np.float32)
K, V = rng.normal(size=(2, 2, 6, 8)).astype(np.float32)
SIZE = (6, 6)
MASKS = {
    "causal": masks.CausalMask(SIZE),
    "local": masks.LocalMask(SIZE, (2, None), 0),
    "chunks": masks.ChunkedCausalMask(SIZE, 3),
    "both": masks.LocalMask(SIZE, (1, 1), 0) & masks.CausalMask(SIZE),
    "either": masks.LocalMask(SIZE, (0, 1), 0) | masks.CausalMask(SIZE, offset=-2),
    "full": masks.FullMask(SIZE),
}


def expected(mask, q, k, v, cap=None, segments=None):
    k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
    scores = np.einsum("hqd,hkd->hqk", q, k)
    if cap is not None:
        scores = cap * np.tanh(scores / cap)
    if segments is not None:
        mask = mask & (segments[:, None] == segments)
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    out = np.einsum("hqk,hkd->hqd", weights / weights.sum(-1, keepdims=True), v)
    return out, np.log(weights.sum(-1)) + scores.max(-1)


def attention(mask, **options):
    heads = masks.MultiHeadMask([mask] * 4)
    return kernels.make_splash_mha(mask=heads, head_shards=1, q_seq_shards=1, **options)


@pytest.mark.parametrize("name", MASKS)
def test_attention(name):
    mask = MASKS[name]
    out = primax.jit(attention(mask))(Q, K, V)
    np.testing.assert_allclose(out, expected(mask[:, :], Q, K, V)[0], rtol=1e-5, atol=1e-6)


def test_segments_cap_and_residuals():
    segments = np.array([0, 0, 1, 1, 1, 2], np.int32)
    kernel = attention(MASKS["causal"], attn_logits_soft_cap=1.5, save_residuals=True)
    ids = kernels.SegmentIds(q=segments, kv=segments)
    out, (sums,) = kernel(Q, K, V, segment_ids=ids)
    right, log_sums = expected(MASKS["causal"][:, :], Q, K, V, 1.5, segments)
    np.testing.assert_allclose(out, right, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sums, log_sums, rtol=1e-5, atol=1e-6)


def test_batches_and_one_key_head():
    kernel = kernels.make_splash_mqa(masks.MultiHeadMask([MASKS["full"]] * 4)[:, :, :])
    out = np.asarray(primax.vmap(kernel)(Q[None], K[None, 0], V[None, 0]))
    right = expected(MASKS["full"][:, :], Q, K[:1], V[:1])[0]
    np.testing.assert_allclose(out[0], right, rtol=1e-5, atol=1e-6)
    leaves, tree = primax.tree_util.tree_flatten(kernel)
    again = primax.tree_util.tree_unflatten(tree, leaves)(Q, K[0], V[0])
    np.testing.assert_array_equal(again, out[0])


def test_derivatives():
    from primax.test_util import check_grads

    check_grads(lambda q, k: attention(MASKS["causal"])(q, k, V), (Q, K), 1, modes=["fwd", "rev"])


def test_arrays_of_masks():
    assert masks.make_causal_mask((3, 4), 1).astype(int).tolist() == [
        [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1],
    ]  # fmt: skip
    assert masks.make_local_attention_mask((3, 3), (1, 0)).sum() == 5
    first, second = (masks.make_random_mask((50, 50), 0.25, 1) for _ in range(2))
    assert (first == second).all() and 0.7 < first.mean() < 0.8


def test_errors():
    with pytest.raises(ValueError, match=r"array of booleans.*try array.astype\(bool\)"):
        masks.NumpyMask(np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"masks of one shape.*give one mask for each head"):
        masks.MultiHeadMask([MASKS["full"], masks.FullMask((2, 2))])
    with pytest.raises(ValueError, match=r"\(6, 6\) and \(2, 2\) do not combine"):
        MASKS["full"] | masks.FullMask((2, 2))
    with pytest.raises(ValueError, match="chunk_size must be positive, but it is 0"):
        masks.make_chunk_attention_mask((3, 3), 0)
    with pytest.raises(ValueError, match="leave both at 1, and place the operands on a mesh"):
        kernels.make_splash_mha(MASKS["full"], head_shards=2)
    with pytest.raises(ValueError, match="2 heads of keys do not divide 3 heads of queries"):
        attention(MASKS["full"])(Q[:3], K, V)
    with pytest.raises(NotImplementedError, match="Mask must define the property 'shape'"):
        _ = masks.Mask().shape


def test_masks_that_libraries_derive():
    def diagonal(queries, keys):
        return queries == keys

    mask = masks._ComputableMask((3, 5), diagonal)
    assert mask.shape == (3, 5) and mask[:, :].tolist() == np.eye(3, 5, dtype=bool).tolist()
    assert mask[1:2, :2].tolist() == [[False, True]]
    assert masks._fill_slice(slice(None, -1), 4) == slice(0, 3, 1)
