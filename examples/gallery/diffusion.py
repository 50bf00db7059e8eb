"""Diffusion model

Learns to turn noise into points on two moons. The network predicts the noise in a noisy point;
sampling removes it in 100 steps.

Method: Ho, Jain, Abbeel, *Denoising diffusion probabilistic models*,
[arXiv:2006.11239](https://arxiv.org/abs/2006.11239).
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import lax, nn, random
from primax.example_libraries import optimizers

QUICK = "--quick" in sys.argv
TRAINING, BATCH, WIDTH, SAMPLES = (2500, 256, 64, 800) if QUICK else (8000, 512, 96, 3000)
LEVELS = 100

# %% [markdown]
# ## Data


# %%
def moons(key, count):
    angle_key, noise_key = random.split(key)
    angle = random.uniform(angle_key, (count,), maxval=jnp.pi)
    upper = jnp.arange(count) % 2 == 0
    x = jnp.where(upper, jnp.cos(angle), 1 - jnp.cos(angle)) - 0.5
    y = jnp.where(upper, jnp.sin(angle), 0.5 - jnp.sin(angle)) - 0.25
    return 1.3 * jnp.stack([x, y], axis=1) + 0.05 * random.normal(noise_key, (count, 2))


# %% [markdown]
# ## Noise
#
# At level `t`, a point is `sqrt(share[t]) * point + sqrt(1 - share[t]) * noise`.

# %%
betas = jnp.linspace(1e-3, 0.12, LEVELS)
share = jnp.cumprod(1 - betas)


def features(level):
    angles = level / LEVELS * 2.0 ** jnp.arange(5) * jnp.pi
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)])


def initial(key):
    widths = (12, WIDTH, WIDTH, WIDTH, 2)
    keys = random.split(key, len(widths))
    he = nn.initializers.he_normal()
    pairs = zip(keys, widths[:-1], widths[1:])
    return [{"w": he(k, (m, n)), "b": jnp.zeros(n)} for k, m, n in pairs]


def predict(params, point, level):
    """The noise in one noisy point."""
    x = jnp.concatenate([point, features(level)])
    for layer in params[:-1]:
        x = nn.silu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, key):
    data_key, level_key, noise_key = random.split(key, 3)
    points = moons(data_key, BATCH)
    level = random.randint(level_key, (BATCH,), 0, LEVELS)
    noise = random.normal(noise_key, points.shape)
    noisy = jnp.sqrt(share[level])[:, None] * points + jnp.sqrt(1 - share[level])[:, None] * noise
    predicted = primax.vmap(predict, (None, 0, 0))(params, noisy, level)
    return jnp.mean((predicted - noise) ** 2)


# %% [markdown]
# ## Training

# %%
init, update, get_params = optimizers.adam(lambda i: 4e-3 * (1 - i / (TRAINING + 1)))


@primax.jit
def fit(key):
    def step(state, inputs):
        i, key = inputs
        value, gradient = primax.value_and_grad(loss)(get_params(state), key)
        return update(i, gradient, state), value

    start, run = random.split(key)
    steps = (jnp.arange(TRAINING), random.split(run, TRAINING))
    state, losses = lax.scan(step, init(initial(start)), steps)
    return get_params(state), losses


params, losses = fit(random.key(0))
print(f"loss from {float(losses[0]):.2f} to {float(losses[-200:].mean()):.3f}")

# %% [markdown]
# ## Sampling


# %%
@primax.jit
def sample(params, key):
    def step(points, inputs):
        level, key = inputs
        noise = primax.vmap(predict, (None, 0, None))(params, points, level)
        points = points - betas[level] / jnp.sqrt(1 - share[level]) * noise
        points = points / jnp.sqrt(1 - betas[level])
        fresh = random.normal(key, points.shape)
        points = points + jnp.where(level > 0, jnp.sqrt(betas[level]), 0.0) * fresh
        return points, points

    start, run = random.split(key)
    levels = jnp.arange(LEVELS)[::-1]
    points = random.normal(start, (SAMPLES, 2))
    return lax.scan(step, points, (levels, random.split(run, LEVELS)))


points, history = sample(params, random.key(1))

# %% [markdown]
# The distance of a sample to the nearest point of a dense set of data measures the quality.

# %%
reference = moons(random.key(2), 2000)
nearest = lambda p: jnp.min(jnp.linalg.norm(reference - p, axis=1))
distances = primax.vmap(nearest)(points)
at_start = primax.vmap(nearest)(history[0])
near = float((distances < 0.2).mean())
print(f"median distance to the data {float(jnp.median(distances)):.3f}", end=", ")
print(f"of noise {float(jnp.median(at_start)):.3f}")
print(f"{near:.0%} of the samples are on a moon")
assert near > (0.7 if QUICK else 0.85)

# %%
figure, axes = plt.subplots(1, 4, figsize=(12, 3.1), layout="constrained", sharex=True, sharey=True)
for ax, i in zip(axes, (0, 50, 80, LEVELS - 1)):
    ax.plot(*np.asarray(history[i]).T, ".", markersize=2)
    ax.set(title=f"after {i + 1} of {LEVELS} steps", xlim=(-2.5, 2.5), ylim=(-2, 2))
plt.show()
