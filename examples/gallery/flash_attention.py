"""Flash attention, step by step

Writes attention as a kernel over blocks: first with all scores, then with a softmax that is
computed part by part, so that no row of scores is ever complete.

Method: Dao et al., *FlashAttention*, [arXiv:2205.14135](https://arxiv.org/abs/2205.14135); softmax
in parts: Milakov and Gimelshein, [arXiv:1805.02867](https://arxiv.org/abs/1805.02867). The complete
kernel is [`ops.flash_attention`](../kernel_ops.md).
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import random
from primax.experimental import pallas as pl

QUICK = "--quick" in sys.argv
LENGTHS = (128, 256, 512) if QUICK else (256, 512, 1024, 2048, 4096)
D, BLOCK = 32, 64


# %% [markdown]
# ## Step 0: plain attention
#
# For one head: `softmax(q kᵀ / sqrt(d)) v`. The matrix of scores has `length²` elements.


# %%
def plain(q, k, v):
    scores = q @ k.T / D**0.5
    return primax.nn.softmax(scores) @ v


def inputs(length):
    return random.normal(random.key(length), (3, length, D))


q, k, v = inputs(LENGTHS[0])
expected = plain(q, k, v)

# %% [markdown]
# ## Step 1: blocks of queries
#
# The grid has a step for each block of queries. `BlockSpec` gives it that block of `q` and of the
# result, and the whole of `k` and `v`. A step needs memory for `BLOCK * length` scores.


# %%
def by_queries(q, k, v):
    def kernel(q_ref, k_ref, v_ref, out_ref):
        scores = q_ref[...] @ k_ref[...].T / D**0.5
        weights = jnp.exp(scores - scores.max(axis=1, keepdims=True))
        out_ref[...] = weights @ v_ref[...] / weights.sum(axis=1, keepdims=True)

    rows = pl.BlockSpec((BLOCK, D), lambda i: (i, 0))
    whole = pl.BlockSpec(k.shape, lambda i: (0, 0))
    return pl.pallas_call(
        kernel,
        primax.ShapeDtypeStruct(q.shape, q.dtype),
        grid=q.shape[0] // BLOCK,
        in_specs=[rows, whole, whole],
        out_specs=rows,
    )(q, k, v)


print(f"blocks of queries: largest difference {jnp.abs(by_queries(q, k, v) - expected).max():.1e}")

# %% [markdown]
# ## Step 2: blocks of keys
#
# A softmax needs the largest score and the sum over all keys. Both can be corrected later: when a
# new block has a larger score, everything so far is multiplied by `exp(old - new)`. The loop keeps
# three values for each query: `largest`, `weight` (the sum), and `total` (the weighted values).


# %%
def flash(q, k, v):
    def kernel(q_ref, k_ref, v_ref, out_ref):
        def body(j, state):
            largest, weight, total = state
            keys = k_ref[pl.ds(j * BLOCK, BLOCK), :]
            values = v_ref[pl.ds(j * BLOCK, BLOCK), :]
            scores = q_ref[...] @ keys.T / D**0.5
            new = jnp.maximum(largest, scores.max(axis=1, keepdims=True))
            correction, weights = jnp.exp(largest - new), jnp.exp(scores - new)
            weight = correction * weight + weights.sum(axis=1, keepdims=True)
            return new, weight, correction * total + weights @ values

        start = jnp.full((BLOCK, 1), -jnp.inf), jnp.zeros((BLOCK, 1)), jnp.zeros((BLOCK, D))
        _, weight, total = primax.lax.fori_loop(0, k_ref.shape[0] // BLOCK, body, start)
        out_ref[...] = total / weight

    rows = pl.BlockSpec((BLOCK, D), lambda i: (i, 0))
    whole = pl.BlockSpec(k.shape, lambda i: (0, 0))
    return pl.pallas_call(
        kernel,
        primax.ShapeDtypeStruct(q.shape, q.dtype),
        grid=q.shape[0] // BLOCK,
        in_specs=[rows, whole, whole],
        out_specs=rows,
    )(q, k, v)


error = float(jnp.abs(flash(q, k, v) - expected).max())
print(f"blocks of keys: largest difference {error:.1e}")
assert error < 1e-5

# %% [markdown]
# ## Step 3: batches and derivatives
#
# A kernel is an operation like others. `vmap` adds heads; `grad` differentiates its program. The
# kernel that ships has a derivative of its own, which computes the scores again.

# %%
heads = random.normal(random.key(1), (3, 4, LENGTHS[0], D))
mapped = primax.vmap(flash)(*heads)
assert jnp.allclose(mapped, primax.vmap(plain)(*heads), atol=1e-5)
gradient = primax.grad(lambda q: by_queries(q, k, v).sum())(q)
difference = float(jnp.abs(gradient - primax.grad(lambda q: plain(q, k, v).sum())(q)).max())
print(f"derivative: largest difference {difference:.1e}")
assert difference < 1e-5

# %% [markdown]
# ## Memory
#
# Temporary memory of the compiled function, by XLA's own analysis. On a CPU all steps of a grid
# without an order are compiled as one batch of operations, so that blocks of queries alone save
# nothing; a GPU has a few steps in flight at a time.

# %%
functions = {"plain": plain, "blocks of queries": by_queries, "blocks of keys": flash}
memory = {name: [] for name in functions}
for length in LENGTHS:
    for name, function in functions.items():
        compiled = primax.jit(function).lower(*inputs(length)).compile()
        memory[name].append(compiled.memory_analysis().temp_size_in_bytes)
for name, sizes in memory.items():
    print(f"{name:18}", *[f"{size / 1024:7.0f} KiB" for size in sizes])
assert memory["blocks of keys"][-1] < 0.4 * memory["plain"][-1]

# %%
plt.figure(figsize=(6.5, 4), layout="constrained")
for name, sizes in memory.items():
    plt.loglog(LENGTHS, np.maximum(sizes, 1), "o-", label=name, base=2)
plt.xlabel("length of the sequence")
plt.ylabel("bytes of temporary memory")
plt.legend()
plt.show()
