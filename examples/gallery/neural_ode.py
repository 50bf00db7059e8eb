"""Neural differential equation

Learns the equation of motion of a damped oscillator from noisy positions. The right side of the
equation is a network; the gradient goes through the solver.

Method: Chen et al., *Neural ordinary differential equations*,
[arXiv:1806.07366](https://arxiv.org/abs/1806.07366). The solver is the fourth-order method of
Kutta; `primax.scipy.integrate.solve_ivp` has adaptive ones.
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import lax, nn, random
from primax.example_libraries import optimizers
from primax.scipy import integrate

QUICK = "--quick" in sys.argv
CURVES, STEPS, WIDTH = (12, 400, 32) if QUICK else (32, 3000, 48)
TIMES = jnp.linspace(0.0, 12.0, 81)
SEEN = 41  # training uses the first half of the times

# %% [markdown]
# ## Data
#
# `true_field` has a cubic spring and damping. `solve_ivp` computes the curves for all starting
# points at once.


# %%
def true_field(t, y):
    return jnp.stack([y[1], -(y[0] ** 3) - 0.3 * y[1]])


def true_curve(start):
    return integrate.solve_ivp(true_field, (0, 12), start, t_eval=TIMES, rtol=1e-5, atol=1e-6).y.T


start_key, noise_key = random.split(random.key(0))
starts = random.uniform(start_key, (CURVES, 2), minval=-1.5, maxval=1.5)
new = jnp.array([[1.2, -0.6], [-1.0, 1.0]])  # for the comparison
curves = primax.jit(primax.vmap(true_curve))(jnp.concatenate([starts, new]))
clean, exact = curves[:CURVES, :SEEN], curves[CURVES:]
data = clean + 0.02 * random.normal(noise_key, clean.shape)

# %% [markdown]
# ## Model and solver


# %%
def initial(key, widths=(2, WIDTH, WIDTH, 2)):
    glorot = nn.initializers.glorot_normal()
    pairs = zip(random.split(key, len(widths)), widths[:-1], widths[1:])
    return [{"w": glorot(k, (m, n)), "b": jnp.zeros(n)} for k, m, n in pairs]


def field(params, y):
    for layer in params[:-1]:
        y = jnp.tanh(y @ layer["w"] + layer["b"])
    return y @ params[-1]["w"] + params[-1]["b"]


def solve(params, start, times):
    def step(y, dt):
        a = field(params, y)
        b = field(params, y + 0.5 * dt * a)
        c = field(params, y + 0.5 * dt * b)
        d = field(params, y + dt * c)
        y = y + dt / 6 * (a + 2 * b + 2 * c + d)
        return y, y

    _, path = lax.scan(step, start, jnp.diff(times))
    return jnp.concatenate([start[None], path])


def loss(params, length):
    curves = primax.vmap(solve, (None, 0, None))(params, starts, TIMES[:length])
    return jnp.mean((curves - data[:, :length]) ** 2)


# %% [markdown]
# ## Training
#
# Short curves are easy to fit and long ones are not, so training begins with the first ten times.

# %%
init, update, get_params = optimizers.adam(1e-2 if QUICK else 3e-3)
state, losses = init(initial(random.key(1))), []
for length in (10, SEEN):

    @primax.jit
    def fit(state, first, length=length):
        def step(state, i):
            value, gradient = primax.value_and_grad(loss)(get_params(state), length)
            return update(i, gradient, state), value

        return lax.scan(step, state, first + jnp.arange(STEPS // 2))

    state, values = fit(state, len(losses))
    losses += values.tolist()
params = get_params(state)

predicted = primax.vmap(solve, (None, 0, None))(params, new, TIMES)
error = float(jnp.sqrt(jnp.mean((predicted - exact)[:, :SEEN] ** 2)))
print(f"mean squared error of the data from {losses[0]:.3f} to {losses[-1]:.5f} (noise: 0.0004)")
print(f"root mean squared error of two new curves {error:.3f}")
assert losses[-1] < 0.02 and error < (0.2 if QUICK else 0.05)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(TIMES, predicted[..., 0].T)
left.plot(TIMES, exact[..., 0].T, "k--", linewidth=1)
left.axvspan(6, 12, alpha=0.1, label="after the times of the data")
left.set(xlabel="time", ylabel="position", title="two new curves (dashed: true equation)")
left.legend(fontsize=8)
grid = jnp.stack(jnp.meshgrid(jnp.linspace(-1.7, 1.7, 18), jnp.linspace(-1.7, 1.7, 18)), axis=-1)
right.quiver(*np.moveaxis(np.asarray(grid), -1, 0), *jnp.moveaxis(field(params, grid), -1, 0))
right.plot(*np.asarray(predicted[0]).T)
right.set(title="learned field", xlabel="position", ylabel="velocity")
plt.show()
