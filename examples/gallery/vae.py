"""Variational autoencoder

Learns a two-dimensional code for handwritten digits, and decodes a grid of codes into new digits.
The loss is written for one image; `vmap` and a key for each image make it that of a batch.

Method: Kingma and Welling, *Auto-encoding variational Bayes*,
[arXiv:1312.6114](https://arxiv.org/abs/1312.6114).
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import primax
import primax.numpy as jnp
from primax import lax, nn, random
from primax.example_libraries import optimizers

QUICK = "--quick" in sys.argv
STEPS, BATCH, HIDDEN, CODE = (1500, 64, 128, 2) if QUICK else (8000, 128, 256, 2)
data = load_digits()
images = (data.data / 16.0).astype(np.float32)

# %% [markdown]
# ## Encoder and decoder
#
# The encoder returns the mean and the logarithm of the deviation of the code, the decoder the
# logits of 64 pixels.


# %%
def initial(key, *widths):
    layers = []
    for k, m, n in zip(random.split(key, len(widths)), widths[:-1], widths[1:]):
        layers.append({"w": nn.initializers.he_normal()(k, (m, n)), "b": jnp.zeros(n)})
    return layers


def apply(layers, x):
    for layer in layers[:-1]:
        x = nn.gelu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def encode(params, image):
    mean, log_deviation = jnp.split(apply(params["encoder"], image), 2)
    return mean, log_deviation


def loss(params, key, image):
    """The negative lower bound of the log-likelihood of one image."""
    mean, log_deviation = encode(params, image)
    code = mean + jnp.exp(log_deviation) * random.normal(key, mean.shape)
    logits = apply(params["decoder"], code)
    reconstruction = jnp.sum(nn.softplus(logits) - image * logits)
    divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(2 * log_deviation) - 2 * log_deviation - 1)
    return reconstruction + divergence


# %% [markdown]
# ## Training

# %%
init, update, get_params = optimizers.adam(2e-3 if QUICK else 1e-3)


@primax.jit
def fit(key):
    def batch_loss(params, key, batch):
        keys = random.split(key, BATCH)
        return primax.vmap(loss, (None, 0, 0))(params, keys, batch).mean()

    def step(state, inputs):
        i, key = inputs
        rows_key, code_key = random.split(key)
        batch = jnp.asarray(images)[random.randint(rows_key, (BATCH,), 0, len(images))]
        value, gradient = primax.value_and_grad(batch_loss)(get_params(state), code_key, batch)
        return update(i, gradient, state), value

    first, second, run = random.split(key, 3)
    params = {
        "encoder": initial(first, 64, HIDDEN, 2 * CODE),
        "decoder": initial(second, CODE, HIDDEN, HIDDEN, 64),
    }
    steps = (jnp.arange(STEPS), random.split(run, STEPS))
    state, losses = lax.scan(step, init(params), steps)
    return get_params(state), losses


params, losses = fit(random.key(0))
first, last = float(losses[0]), float(losses[-100:].mean())
print(f"bound of the negative log-likelihood from {first:.1f} to {last:.1f} nats")

# %% [markdown]
# A code that separates the digits is useful: compare the label of each image with that of the
# image whose code is nearest.

# %%
codes, _ = primax.vmap(encode, (None, 0))(params, images)
squared = ((codes[:, None] - codes[None]) ** 2).sum(axis=-1) + 1e9 * jnp.eye(len(codes))
agreement = float((data.target[np.asarray(squared.argmin(axis=1))] == data.target).mean())
print(f"{agreement:.0%} of the nearest codes have the same label (at random: 10 %)")
assert last < 0.6 * first and agreement > 0.55

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
points = left.scatter(*np.asarray(codes).T, c=data.target, cmap="tab10", s=5)
left.set(title="codes of the images")
figure.colorbar(points, ax=left, ticks=range(10))
steps = jnp.linspace(-2, 2, 15)
grid = jnp.stack(jnp.meshgrid(steps, -steps), axis=-1)
decoded = nn.sigmoid(apply(params["decoder"], grid)).reshape(15, 15, 8, 8)
right.imshow(decoded.transpose(0, 2, 1, 3).reshape(120, 120), cmap="gray_r")
right.set(title="decoded grid of codes", xticks=[], yticks=[])
plt.show()
