"""Gaussian process regression

Fits a smooth function with an error band to noisy points. The parameters of the kernel maximize the
marginal likelihood; its gradient comes from `grad` through a Cholesky factorization.

Method: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, algorithm 2.1.
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import random
from primax.scipy import linalg

QUICK = "--quick" in sys.argv
POINTS, STEPS = (60, 150) if QUICK else (150, 600)
NOISE = 0.2

# %% [markdown]
# ## Data


# %%
def truth(x):
    return jnp.sin(2 * x) + 0.3 * x


x_key, noise_key = random.split(random.key(0))
x = jnp.sort(random.uniform(x_key, (POINTS,), minval=-3.0, maxval=3.0))
x = x[(x < 0.5) | (x > 1.5)]  # a gap
y = truth(x) + NOISE * random.normal(noise_key, x.shape)

# %% [markdown]
# ## Kernel and likelihood
#
# The kernel is written for two points; `vmap` makes the matrix. The parameters are logarithms, so
# that they stay positive.


# %%
def kernel(params, a, b):
    return jnp.exp(2 * params["scale"] - 0.5 * ((a - b) / jnp.exp(params["length"])) ** 2)


def matrix(params, a, b):
    rows = primax.vmap(kernel, in_axes=(None, None, 0))
    return primax.vmap(rows, in_axes=(None, 0, None))(params, a, b)


def factor(params):
    noise = jnp.exp(2 * params["noise"]) + 1e-5
    return linalg.cholesky(matrix(params, x, x) + noise * jnp.eye(len(x)), lower=True)


def negative_log_likelihood(params):
    lower = factor(params)
    whitened = linalg.solve_triangular(lower, y, lower=True)
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diagonal(lower)))
    return 0.5 * (whitened @ whitened + log_determinant + len(x) * jnp.log(2 * jnp.pi))


# %% [markdown]
# ## Fit


# %%
@primax.jit
def step(params):
    value, gradient = primax.value_and_grad(negative_log_likelihood)(params)
    return primax.tree.map(lambda p, g: p - 0.5 / len(x) * g, params, gradient), value


params = {"scale": 0.0, "length": 0.0, "noise": 0.0}
values = []
for _ in range(STEPS):
    params, value = step(params)
    values.append(value)
noise = float(jnp.exp(params["noise"]))
print(f"negative log-likelihood from {float(values[0]):.1f} to {float(values[-1]):.1f}")
print(f"noise {noise:.2f} (the data have {NOISE}), length {float(jnp.exp(params['length'])):.2f}")
assert abs(noise - NOISE) < 0.08 and values[-1] < values[0] - 10

# %% [markdown]
# ## Prediction


# %%
@primax.jit
def predict(params, new):
    lower = factor(params)
    cross = matrix(params, x, new)
    whitened = linalg.solve_triangular(lower, cross, lower=True)
    mean = whitened.T @ linalg.solve_triangular(lower, y, lower=True)
    variance = jnp.exp(2 * params["scale"]) - jnp.sum(whitened**2, axis=0)
    return mean, jnp.sqrt(variance)


new = jnp.linspace(-3.2, 3.2, 300)
mean, deviation = predict(params, new)
inside = np.asarray(jnp.abs(mean - truth(new)) < 2 * deviation)
gap, beside = (float(deviation[jnp.argmin(jnp.abs(new - at))]) for at in (1.0, -1.0))
print(f"{inside.mean():.0%} of the true function is within two standard deviations")
print(f"standard deviation {gap:.2f} in the gap, {beside:.2f} among points")
assert inside.mean() > 0.8 and gap > beside

# %%
plt.figure(figsize=(8, 4), layout="constrained")
plt.fill_between(new, mean - 2 * deviation, mean + 2 * deviation, alpha=0.25, label="2 deviations")
plt.plot(new, mean, label="mean")
plt.plot(new, truth(new), "k--", linewidth=1, label="true function")
plt.plot(x, y, "k.", label="data")
plt.legend()
plt.show()
