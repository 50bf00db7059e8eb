"""Physics-informed network

Solves Burgers' equation with a network whose loss is the equation itself. The derivatives of the
network with respect to its inputs are those of a function of two numbers, mapped over points.

Method: Raissi, Perdikaris, Karniadakis, *Physics-informed neural networks*, Journal of
Computational Physics 378 (2019). The comparison is a finite-difference solution.
"""

# %%
import sys

import matplotlib.pyplot as plt

import primax
import primax.numpy as jnp
from primax import lax, nn, random
from primax.example_libraries import optimizers

QUICK = "--quick" in sys.argv
STEPS, POINTS, WIDTH = (1500, 200, 24) if QUICK else (8000, 400, 32)
VISCOSITY = 0.1

# %% [markdown]
# ## Equation
#
# `u_t + u u_x = ν u_xx` for `x` in [-1, 1] and `t` in [0, 1], with `u(0, x) = -sin(πx)` and `u = 0`
# at the ends. The factors in `u` satisfy both conditions, so that the equation alone remains.


# %%
def initial(key, widths=(2, WIDTH, WIDTH, WIDTH, 1)):
    glorot = nn.initializers.glorot_normal()
    pairs = zip(random.split(key, len(widths)), widths[:-1], widths[1:])
    return [{"w": glorot(k, (m, n)), "b": jnp.zeros(n)} for k, m, n in pairs]


def u(params, t, x):
    y = jnp.stack([t, x])
    for layer in params[:-1]:
        y = jnp.tanh(y @ layer["w"] + layer["b"])
    y = (y @ params[-1]["w"] + params[-1]["b"])[0]
    return -jnp.sin(jnp.pi * x) + t * (1 - x**2) * y


def along(function, x):
    """A function of one number, and its derivative, by forward mode."""
    return primax.jvp(function, (x,), (jnp.ones(()),))


def residual(params, t, x):
    _, u_t = along(lambda t: u(params, t, x), t)
    (value, u_x), (_, u_xx) = along(lambda x: along(lambda x: u(params, t, x), x), x)
    return u_t + value * u_x - VISCOSITY * u_xx


def loss(params, key):
    t_key, x_key = random.split(key)
    t = random.uniform(t_key, (POINTS,))
    x = random.uniform(x_key, (POINTS,), minval=-1.0)
    return jnp.mean(primax.vmap(residual, (None, 0, 0))(params, t, x) ** 2)


# %% [markdown]
# ## Training

# %%
init, update, get_params = optimizers.adam(lambda i: 5e-3 * 0.1 ** (i / STEPS))


@primax.jit
def fit(key):
    def step(state, inputs):
        i, key = inputs
        value, gradient = primax.value_and_grad(loss)(get_params(state), key)
        return update(i, gradient, state), value

    start, run = random.split(key)
    steps = (jnp.arange(STEPS), random.split(run, STEPS))
    state, losses = lax.scan(step, init(initial(start)), steps)
    return get_params(state), losses


params, losses = fit(random.key(0))

# %% [markdown]
# ## Comparison
#
# An explicit finite-difference method on 200 intervals and 5,000 steps.


# %%
@primax.jit
def finite_differences(x, steps=5000):
    h, dt = x[1] - x[0], 1 / steps

    def step(u, _):
        left, middle, right = u[:-2], u[1:-1], u[2:]
        change = VISCOSITY * (right - 2 * middle + left) / h**2
        change = change - (right**2 - left**2) / (4 * h)
        return u.at[1:-1].add(dt * change), None

    def frame(u, _):
        return lax.scan(step, u, length=steps // 50)[0], u

    last, frames = lax.scan(frame, -jnp.sin(jnp.pi * x), length=50)
    return jnp.concatenate([frames, last[None]])


x, t = jnp.linspace(-1, 1, 201), jnp.linspace(0, 1, 51)
expected = finite_differences(x)
on_grid = primax.vmap(primax.vmap(u, (None, None, 0)), (None, 0, None))
predicted = primax.jit(on_grid)(params, t, x)
error = float(jnp.linalg.norm(predicted - expected) / jnp.linalg.norm(expected))
print(f"mean squared residual from {float(losses[0]):.2f} to {float(losses[-50:].mean()):.1e}")
print(f"relative error of the solution {error:.1%}")
assert error < (0.15 if QUICK else 0.05)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
image = left.imshow(predicted.T, aspect="auto", extent=(0, 1, -1, 1), origin="lower", cmap="RdBu")
left.set(xlabel="t", ylabel="x", title="u(t, x)")
figure.colorbar(image, ax=left)
for i in (0, 25, 50):
    (line,) = right.plot(x, predicted[i], label=f"network, t = {float(t[i]):.1f}")
    right.plot(x, expected[i], "k--", linewidth=1)
right.set(xlabel="x", title="dashed: finite differences")
right.legend()
plt.show()
