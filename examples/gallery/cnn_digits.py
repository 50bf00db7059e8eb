"""Convolutional network on digits

Classifies the 1,797 handwritten digits that scikit-learn contains. Convolutions come from `lax`,
Adam from `example_libraries.optimizers`; training data are shifted at random.
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
STEPS, BATCH = (250, 64) if QUICK else (1200, 128)

# %%
data = load_digits()
images = (data.images / 16.0).astype(np.float32)[..., None]  # [example, height, width, channel]
labels = data.target.astype(np.int32)
order = np.asarray(random.permutation(random.key(0), len(labels)))
test, train = order[:360], order[360:]

# %% [markdown]
# ## Network
#
# Two convolutions, each followed by a maximum over windows of 2 x 2, and one dense layer.


# %%
def convolve(x, kernel):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)


def pool(x):
    return x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 2, 2, -1).max(axis=(2, 4))


def initial(key):
    keys = random.split(key, 3)
    he = nn.initializers.he_normal()
    return {
        "first": he(keys[0], (3, 3, 1, 16)),
        "second": he(keys[1], (3, 3, 16, 32)),
        "dense": he(keys[2], (2 * 2 * 32, 10)),
        "bias": jnp.zeros(10),
    }


def logits(params, x):
    x = pool(nn.relu(convolve(x, params["first"])))
    x = pool(nn.relu(convolve(x, params["second"])))
    return x.reshape(len(x), -1) @ params["dense"] + params["bias"]


def loss(params, x, y):
    return -(nn.log_softmax(logits(params, x)) * nn.one_hot(y, 10)).sum(axis=1).mean()


# %% [markdown]
# ## Training
#
# The whole training is one compiled function: `scan` runs the steps, and each step draws its batch.

# %%
init, update, get_params = optimizers.adam(4e-3 if QUICK else 2e-3)


def augment(key, x):
    shift = random.randint(key, (2,), -1, 2)
    return lax.dynamic_slice(jnp.pad(x, ((1, 1), (1, 1), (0, 0))), (*(shift + 1), 0), x.shape)


@primax.jit
def fit(key, x, y):
    def step(state, inputs):
        i, key = inputs
        rows_key, shift_key = random.split(key)
        rows = random.randint(rows_key, (BATCH,), 0, len(x))
        batch = primax.vmap(augment)(random.split(shift_key, BATCH), x[rows])
        value, gradient = primax.value_and_grad(loss)(get_params(state), batch, y[rows])
        return update(i, gradient, state), value

    start, run = random.split(key)
    steps = (jnp.arange(STEPS), random.split(run, STEPS))
    state, losses = lax.scan(step, init(initial(start)), steps)
    return get_params(state), losses


params, losses = fit(random.key(1), images[train], labels[train])
guesses = np.asarray(primax.jit(logits)(params, images[test]).argmax(axis=1))
accuracy = float((guesses == labels[test]).mean())
print(f"loss from {float(losses[0]):.2f} to {float(losses[-20:].mean()):.3f} in {STEPS} steps")
print(f"{accuracy:.1%} of {len(test)} test images are classified correctly")
assert accuracy > (0.92 if QUICK else 0.97)

# %%
figure = plt.figure(figsize=(10, 4), layout="constrained")
left, right = figure.subfigures(1, 2)
ax = left.subplots()
ax.semilogy(losses, linewidth=0.7)
ax.set(xlabel="step", ylabel="cross-entropy")
wrong_first = np.argsort(guesses == labels[test], kind="stable")[:24]
for ax, i in zip(right.subplots(4, 6).flat, wrong_first):
    ax.imshow(images[test][i], cmap="gray_r")
    right_guess = guesses[i] == labels[test][i]
    ax.set_title(str(guesses[i]), color="tab:green" if right_guess else "tab:red", fontsize=9)
    ax.axis("off")
plt.show()
