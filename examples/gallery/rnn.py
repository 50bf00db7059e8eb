"""Recurrent network with scan

A gated recurrent unit learns to add two marked numbers of a sequence. The cell is a function of one
time step; `scan` runs it along the sequence, `vmap` over the batch, and `grad` through both.

The task is the adding problem of Hochreiter and Schmidhuber, *Long short-term memory*, Neural
Computation 9 (1997); the cell is that of Cho et al., [arXiv:1406.1078](https://arxiv.org/abs/1406.1078).
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
LENGTH, STEPS, BATCH, HIDDEN = (12, 700, 64, 24) if QUICK else (30, 3000, 64, 32)

# %% [markdown]
# ## Task
#
# Each element has a number and a mark. Two of the marks are 1. The target is the sum of the two
# marked numbers. The best constant answer, 1, has a mean squared error of 1/6.


# %%
def example(key):
    number_key, place_key = random.split(key)
    numbers = random.uniform(number_key, (LENGTH,))
    places = random.choice(place_key, LENGTH, (2,), replace=False)
    marks = jnp.zeros(LENGTH).at[places].set(1.0)
    return jnp.stack([numbers, marks], axis=1), numbers[places].sum()


# %% [markdown]
# ## Cell


# %%
def initial(key):
    keys = random.split(key, 3)
    normal = nn.initializers.glorot_normal()
    return {
        "input": normal(keys[0], (2, 3 * HIDDEN)),
        "state": normal(keys[1], (HIDDEN, 3 * HIDDEN)),
        "bias": jnp.zeros(3 * HIDDEN),
        "output": normal(keys[2], (HIDDEN, 1)),
    }


def cell(params, state, element):
    inputs = jnp.split(element @ params["input"] + params["bias"], 3)
    states = jnp.split(state @ params["state"], 3)
    reset, update = nn.sigmoid(inputs[0] + states[0]), nn.sigmoid(inputs[1] + states[1])
    candidate = jnp.tanh(inputs[2] + reset * states[2])
    return update * state + (1 - update) * candidate


def predict(params, sequence):
    def step(state, element):
        state = cell(params, state, element)
        return state, state

    state, states = lax.scan(step, jnp.zeros(HIDDEN), sequence)
    return (state @ params["output"])[0], states


def loss(params, keys):
    sequences, targets = primax.vmap(example)(keys)
    answers, _ = primax.vmap(predict, (None, 0))(params, sequences)
    return jnp.mean((answers - targets) ** 2)


# %% [markdown]
# ## Training

# %%
init, update, get_params = optimizers.adam(1e-2 if QUICK else 5e-3)


@primax.jit
def fit(key):
    def step(state, inputs):
        i, key = inputs
        keys = random.split(key, BATCH)
        value, gradient = primax.value_and_grad(loss)(get_params(state), keys)
        return update(i, optimizers.clip_grads(gradient, 1.0), state), value

    start, run = random.split(key)
    steps = (jnp.arange(STEPS), random.split(run, STEPS))
    state, losses = lax.scan(step, init(initial(start)), steps)
    return get_params(state), losses


params, losses = fit(random.key(0))
error = float(primax.jit(loss)(params, random.split(random.key(1), 1000)))
print(f"mean squared error of 1000 new sequences {error:.4f} (constant answer: 0.1667)")
assert error < 0.02

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.semilogy(losses, linewidth=0.7)
left.axhline(1 / 6, color="black", linestyle="--", label="constant answer")
left.set(xlabel="step", ylabel="mean squared error")
left.legend()
sequence, target = example(random.key(2))
answer, states = predict(params, sequence)
right.imshow(np.asarray(states).T, aspect="auto", cmap="coolwarm")
for place in np.flatnonzero(sequence[:, 1]):
    right.axvline(place, color="black")
right.set(xlabel="time step (lines: marks)", ylabel="element of the state")
right.set_title(f"answer {float(answer):.2f}, target {float(target):.2f}")
plt.show()
