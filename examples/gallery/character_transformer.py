"""Character transformer

Trains a small transformer to predict the next character of the Zen of Python, and writes text with
it, one character at a time with a cache of keys and values.

Method: Vaswani et al., *Attention is all you need*,
[arXiv:1706.03762](https://arxiv.org/abs/1706.03762), with normalization before each part.
"""

# %%
import contextlib
import io
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import lax, nn, random
from primax.example_libraries import optimizers

QUICK = "--quick" in sys.argv
STEPS, BATCH, LENGTH = (220, 10, 48) if QUICK else (1500, 16, 64)
LAYERS, HEADS, WIDTH = 2, 4, 48 if QUICK else 96

# %%
with contextlib.redirect_stdout(io.StringIO()):
    import this
text = "".join(this.d.get(c, c) for c in this.s)
alphabet = sorted(set(text))
tokens = jnp.array([alphabet.index(c) for c in text])
print(f"{len(text)} characters, {len(alphabet)} different: {text[:30]!r}")

# %% [markdown]
# ## Model
#
# The layers are stacked along the first axis of their parameters, and `scan` runs through them.


# %%
def initial(key):
    keys = random.split(key, 6)
    normal = lambda key, *shape: random.normal(key, shape) / shape[-2] ** 0.5
    return {
        "tokens": 0.3 * normal(keys[0], len(alphabet), WIDTH),
        "places": 0.3 * normal(keys[1], LENGTH, WIDTH),
        "layers": {
            "attention": normal(keys[2], LAYERS, WIDTH, 3 * WIDTH),
            "projection": 0.5 * normal(keys[3], LAYERS, WIDTH, WIDTH),
            "up": normal(keys[4], LAYERS, WIDTH, 4 * WIDTH),
            "down": 0.5 * normal(keys[5], LAYERS, 4 * WIDTH, WIDTH),
        },
    }


def normalized(x):
    return x * lax.rsqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


def heads(x):
    return x.reshape(*x.shape[:-1], HEADS, -1)


def layer(params, x):
    """One layer for a sequence; x: [length, width]."""
    q, k, v = (heads(a) for a in jnp.split(normalized(x) @ params["attention"], 3, axis=-1))
    mixed = nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.reshape(x.shape) @ params["projection"]
    return x + nn.gelu(normalized(x) @ params["up"]) @ params["down"]


def logits(params, sequence):
    x = params["tokens"][sequence] + params["places"][: len(sequence)]
    x, _ = lax.scan(lambda x, p: (layer(p, x), None), x, params["layers"])
    return normalized(x) @ params["tokens"].T


def loss(params, sequence):
    """Bits for each character."""
    scores = nn.log_softmax(logits(params, sequence[:-1]))
    return -jnp.take_along_axis(scores, sequence[1:, None], axis=1).mean() / jnp.log(2.0)


# %% [markdown]
# ## Training

# %%
init, update, get_params = optimizers.adam(lambda i: 6e-3 * (1 - 0.9 * i / STEPS))


@primax.jit
def fit(key):
    def batch_loss(params, starts):
        windows = primax.vmap(lambda s: lax.dynamic_slice(tokens, (s,), (LENGTH + 1,)))(starts)
        return primax.vmap(loss, (None, 0))(params, windows).mean()

    def step(state, inputs):
        i, key = inputs
        starts = random.randint(key, (BATCH,), 0, len(tokens) - LENGTH)
        value, gradient = primax.value_and_grad(batch_loss)(get_params(state), starts)
        return update(i, optimizers.clip_grads(gradient, 1.0), state), value

    start, run = random.split(key)
    steps = (jnp.arange(STEPS), random.split(run, STEPS))
    state, losses = lax.scan(step, init(initial(start)), steps)
    return get_params(state), losses


params, losses = fit(random.key(0))
counts = jnp.bincount(tokens, length=len(alphabet)) / len(tokens)
entropy = float(-(counts * jnp.log2(counts)).sum())
first, last = float(losses[0]), float(losses[-20:].mean())
print(f"bits for each character from {first:.2f} to {last:.2f} (frequencies alone: {entropy:.2f})")
assert last < (2.0 if QUICK else 0.4)

# %% [markdown]
# ## Sampling
#
# A new character needs the keys and values of those before it. They are kept in arrays of fixed
# size, so that one compiled step serves for all positions.


# %%
def step_with_cache(params, cache, token, place):
    """Logits after one more token; cache: [layer, 2, length, head, width]."""
    x = params["tokens"][token] + params["places"][place]

    def one(x, inputs):
        p, cache = inputs
        q, k, v = (heads(a) for a in jnp.split(normalized(x) @ p["attention"], 3))
        cache = cache.at[:, place].set(jnp.stack([k, v]))
        scores = jnp.einsum("hd,thd->ht", q, cache[0]) / q.shape[-1] ** 0.5
        scores = jnp.where(jnp.arange(LENGTH) <= place, scores, -jnp.inf)
        x = x + jnp.einsum("ht,thd->hd", nn.softmax(scores), cache[1]).ravel() @ p["projection"]
        return x + nn.gelu(normalized(x) @ p["up"]) @ p["down"], cache

    x, cache = lax.scan(one, x, (params["layers"], cache))
    return normalized(x) @ params["tokens"].T, cache


@primax.jit
def write(params, key, start):
    def step(carry, inputs):
        cache, token = carry
        place, key = inputs
        scores, cache = step_with_cache(params, cache, token, place)
        following = random.categorical(key, scores / 0.5)
        return (cache, following), following

    cache = jnp.zeros((LAYERS, 2, LENGTH, HEADS, WIDTH // HEADS))
    keys = random.split(key, LENGTH)
    return lax.scan(step, (cache, start), (jnp.arange(LENGTH), keys))[1]


starts = jnp.array([alphabet.index(c) for c in "BENS"])
samples = primax.vmap(write, (None, 0, 0))(params, random.split(random.key(2), 4), starts)
for start, sample in zip(starts, np.asarray(samples)):
    print(repr("".join(alphabet[i] for i in [int(start), *sample])))
words = {w.strip(".,!*-").lower() for w in text.split()}
written = "".join(alphabet[i] for i in np.asarray(samples[:, :-8]).ravel()).split()
known = float(np.mean([w.strip(".,!*-").lower() in words for w in written]))
print(f"{known:.0%} of the written words are words of the text")

# %% [markdown]
# The cache computes what the whole sequence gives:

# %%
cache = jnp.zeros((LAYERS, 2, LENGTH, HEADS, WIDTH // HEADS))
compiled_step = primax.jit(step_with_cache)
for place in range(8):
    scores, cache = compiled_step(params, cache, tokens[place], place)
assert jnp.allclose(scores, logits(params, tokens[:8])[-1], atol=1e-3)

# %%
plt.figure(figsize=(7, 3.4), layout="constrained")
plt.plot(losses, label="transformer")
plt.axhline(entropy, color="black", linestyle="--", label="frequencies of characters")
plt.xlabel("step")
plt.ylabel("bits for each character")
plt.legend()
plt.show()
