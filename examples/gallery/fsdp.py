"""FSDP on eight virtual devices

Trains a network whose parameters, gradients and optimizer state are divided over eight devices of
one CPU. The losses are those of training with copies; the memory of each device is an eighth.

[A transformer with divided parameters](../several_devices/fsdp.md) explains each step. Method:
Rajbhandari et al., *ZeRO*, [arXiv:1910.02054](https://arxiv.org/abs/1910.02054).
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax

primax.config.update("num_cpu_devices", 8)

import primax.numpy as jnp  # noqa: E402
from primax import P, lax, nn, random  # noqa: E402
from primax.sharding import AxisType, NamedSharding  # noqa: E402

QUICK = "--quick" in sys.argv
LAYERS, WIDTH, BATCH, STEPS = (4, 64, 64, 60) if QUICK else (6, 128, 128, 120)

# %% [markdown]
# ## Model
#
# Residual layers, stacked along the first axis, so that `scan` runs through them. The task is to
# multiply by a fixed random matrix and take the tangent.


# %%
def initial(key):
    inner, outer = random.split(key)
    return {
        "inner": random.normal(inner, (LAYERS, WIDTH, 4 * WIDTH)) / WIDTH**0.5,
        "outer": random.normal(outer, (LAYERS, 4 * WIDTH, WIDTH)) / (16 * WIDTH) ** 0.5,
    }


def layer(params, x):
    return x + nn.gelu(x @ params["inner"]) @ params["outer"]


def loss(params, x, y, layer=layer):
    out, _ = lax.scan(lambda x, p: (layer(p, x), None), x, params)
    return jnp.mean((out - y) ** 2)


def step(state, x, y, loss=loss):
    """One step of momentum; the state contains parameters and their velocities."""
    params, velocities = state
    value, gradient = primax.value_and_grad(loss)(params, x, y)
    velocities = primax.tree.map(lambda v, g: 0.9 * v + g, velocities, gradient)
    params = primax.tree.map(lambda p, v: p - 0.1 * v, params, velocities)
    return (params, velocities), value


# %% [markdown]
# ## Division
#
# Each matrix is divided along its longest axis. In a layer, the constraint gathers the matrices of
# that layer alone.

# %%
mesh = primax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
copied, by_batch = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
divided = {
    "inner": NamedSharding(mesh, P(None, None, "data")),
    "outer": NamedSharding(mesh, P(None, "data", None)),
}


def gathering_layer(params, x):
    whole = primax.tree.map(lambda w: lax.with_sharding_constraint(w, copied), params)
    return layer(whole, lax.with_sharding_constraint(x, by_batch))


def divided_step(state, x, y):
    return step(state, x, y, lambda *args: loss(*args, layer=gathering_layer))


key, x_key, matrix_key = random.split(random.key(0), 3)
x = primax.device_put(random.normal(x_key, (BATCH, WIDTH)), by_batch)
target = jnp.tanh(x @ random.normal(matrix_key, (WIDTH, WIDTH)) / WIDTH**0.5)

# %% [markdown]
# ## Training, twice

# %%
losses, memory = {}, {}
for name, shardings, function in ("copies", copied, step), ("divided", divided, divided_step):
    places = (shardings, shardings)
    params = primax.jit(initial, out_shardings=shardings)(key)
    state = primax.device_put((params, primax.tree.map(jnp.zeros_like, params)), places)
    train = primax.jit(function, out_shardings=(places, copied), donate_argnums=0)
    compiled = train.lower(state, x, target).compile()
    memory[name] = compiled.memory_analysis().argument_size_in_bytes / 1e6
    values = []
    for _ in range(STEPS):
        state, value = compiled(state, x, target)
        values.append(value)
    losses[name] = np.array([float(v) for v in values])

difference = float(np.abs(losses["copies"] / losses["divided"] - 1).max())
print(f"loss from {losses['divided'][0]:.3f} to {losses['divided'][-1]:.4f}")
print(f"largest relative difference of the losses {difference:.1e}")
for name, size in memory.items():
    print(f"arguments on each device, {name}: {size:.2f} MB")
assert difference < 1e-2 and losses["divided"][-1] < 0.3 * losses["divided"][0]
assert memory["divided"] < memory["copies"] / 6

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.semilogy(losses["copies"], linewidth=4, alpha=0.4, label="copies")
left.semilogy(losses["divided"], "k--", label="divided")
left.set(xlabel="step", ylabel="loss")
left.legend()
right.bar(list(memory), list(memory.values()), color=["tab:blue", "tab:orange"])
right.set(ylabel="MB on each device")
plt.show()
