"""Learning to learn (MAML)

Finds initial parameters from which one gradient step fits a new sine curve. The loss of the outer
problem contains the gradient step of the inner one, so `grad` is applied to a function that calls
`grad`.

Method: Finn, Abbeel, Levine, *Model-agnostic meta-learning*,
[arXiv:1703.03400](https://arxiv.org/abs/1703.03400).
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
STEPS, TASKS = (900, 16) if QUICK else (6000, 25)
POINTS, RATE = 10, 0.05

# %% [markdown]
# ## Tasks
#
# A task is a sine curve with random amplitude and phase. Some points are for the inner step, others
# measure its result.


# %%
def task(key):
    keys = random.split(key, 3)
    amplitude = random.uniform(keys[0], minval=0.5, maxval=3.0)
    phase = random.uniform(keys[1], maxval=jnp.pi)
    x = random.uniform(keys[2], (2, POINTS, 1), minval=-4.0, maxval=4.0)
    return x, amplitude * jnp.sin(x + phase)


def initial(key, widths=(1, 40, 40, 1)):
    keys = random.split(key, len(widths))
    he = nn.initializers.he_normal()
    pairs = zip(keys, widths[:-1], widths[1:])
    return [{"w": he(k, (m, n)), "b": jnp.zeros(n)} for k, m, n in pairs]


def predict(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


# %% [markdown]
# ## Inner and outer problem


# %%
def adapt(params, x, y, steps=1):
    for _ in range(steps):
        gradient = primax.grad(loss)(params, x, y)
        params = primax.tree.map(lambda p, g: p - RATE * g, params, gradient)
    return params


def adapted_loss(params, key):
    x, y = task(key)
    return loss(adapt(params, x[0], y[0]), x[1], y[1])


def mean_loss(params, keys):
    return primax.vmap(adapted_loss, (None, 0))(params, keys).mean()


init, update, get_params = optimizers.adam(3e-3 if QUICK else 1e-3)


@primax.jit
def fit(key):
    def step(state, inputs):
        i, key = inputs
        keys = random.split(key, TASKS)
        value, gradient = primax.value_and_grad(mean_loss)(get_params(state), keys)
        return update(i, gradient, state), value

    start, run = random.split(key)
    steps = (jnp.arange(STEPS), random.split(run, STEPS))
    state, losses = lax.scan(step, init(initial(start)), steps)
    return get_params(state), losses


params, losses = fit(random.key(0))

# %% [markdown]
# ## New tasks

# %%
keys = random.split(random.key(1), 500)
before = float(primax.vmap(lambda k: loss(params, *(a[1] for a in task(k))))(keys).mean())
after = float(primax.jit(mean_loss)(params, keys))
plain = float(primax.jit(mean_loss)(initial(random.key(2)), keys))
print(f"error on 500 new curves: {before:.2f} before the step, {after:.2f} after it")
print(f"one step from random parameters: {plain:.2f}")
assert after < 0.5 * before and after < 0.5 * plain

# %%
x, y = task(random.key(9))
line = jnp.linspace(-4, 4, 200)[:, None]
order = np.argsort(np.asarray(x).ravel())
plt.figure(figsize=(8, 4), layout="constrained")
plt.plot(x.ravel()[order], y.ravel()[order], "k--", linewidth=1, label="curve")
plt.plot(x[0], y[0], "ko", label="points")
plt.plot(line, predict(params, line), ":", label="learned parameters")
for steps in (1, 5):
    adapted = adapt(params, x[0], y[0], steps)
    plt.plot(line, predict(adapted, line), label=f"after {steps} step{'s' * (steps > 1)}")
plt.legend()
plt.show()
