"""Hamiltonian Monte Carlo

Draws from a density with curved contours, by many chains at once. The sampler is written for one
chain: `grad` gives the force, `scan` runs the chain, and `vmap` runs all chains.

Method: Neal, *MCMC using Hamiltonian dynamics*, [arXiv:1206.1901](https://arxiv.org/abs/1206.1901).
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import lax, random

QUICK = "--quick" in sys.argv
CHAINS, DRAWS, WARM_UP = (64, 400, 100) if QUICK else (128, 4000, 500)
STEP, STEPS = 0.15, 16  # size and number of the leapfrog steps of a proposal

# %% [markdown]
# ## Density
#
# `x` has a standard normal distribution, and `y` given `x` a normal distribution with mean `x²` and
# standard deviation 0.5. The moments are known: the mean of `y` is 1, its variance is 2.25.


# %%
def log_density(position):
    x, y = position
    return -0.5 * x**2 - 0.5 * ((y - x**2) / 0.5) ** 2


# %% [markdown]
# ## Sampler
#
# The leapfrog method follows the dynamics of a particle in the potential `-log_density`. A proposal
# is accepted with a probability that corrects the error of the method.


# %%
def leapfrog(position, momentum):
    def step(state, _):
        position, momentum = state
        momentum = momentum + 0.5 * STEP * primax.grad(log_density)(position)
        position = position + STEP * momentum
        momentum = momentum + 0.5 * STEP * primax.grad(log_density)(position)
        return (position, momentum), None

    return lax.scan(step, (position, momentum), length=STEPS)[0]


def energy(position, momentum):
    return 0.5 * jnp.sum(momentum**2) - log_density(position)


def transition(position, key):
    for_momentum, for_choice = random.split(key)
    momentum = random.normal(for_momentum, position.shape)
    proposal, last_momentum = leapfrog(position, momentum)
    difference = energy(position, momentum) - energy(proposal, last_momentum)
    accepted = jnp.log(random.uniform(for_choice)) < difference
    position = jnp.where(accepted, proposal, position)
    return position, (position, accepted)


def chain(key):
    start, run = random.split(key)
    keys = random.split(run, DRAWS + WARM_UP)
    _, (positions, accepted) = lax.scan(transition, random.normal(start, (2,)), keys)
    return positions[WARM_UP:], accepted[WARM_UP:].mean()


# %% [markdown]
# ## Draws
#
# `rhat` compares the variance between chains with the variance within chains. It is close to 1 if
# the chains agree.

# %%
draws, accepted = primax.jit(primax.vmap(chain))(random.split(random.key(0), CHAINS))
within = draws.var(axis=1).mean(axis=0)
between = draws.mean(axis=1).var(axis=0)
rhat = np.asarray(jnp.sqrt(1 + between / within))
mean, variance = np.asarray(draws.mean((0, 1))), np.asarray(draws.var((0, 1)))
print(f"accepted: {accepted.mean():.1%} of {draws.shape[0] * draws.shape[1]:,} proposals")
print(f"mean of x {mean[0]:+.2f} (exact 0), of y {mean[1]:.2f} (exact 1)")
print(f"variance of x {variance[0]:.2f} (exact 1), of y {variance[1]:.2f} (exact 2.25)")
print(f"rhat {rhat[0]:.3f} and {rhat[1]:.3f}")
assert np.allclose(mean, [0, 1], atol=0.15) and np.allclose(variance, [1, 2.25], rtol=0.2)
assert rhat.max() < 1.05 and accepted.mean() > 0.7

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
grid = jnp.stack(jnp.meshgrid(jnp.linspace(-3, 3, 120), jnp.linspace(-2, 7, 120)), axis=-1)
levels = jnp.exp(primax.vmap(primax.vmap(log_density))(grid))
left.contourf(grid[..., 0], grid[..., 1], levels, levels=12, cmap="Blues")
left.plot(*np.asarray(draws[0, :60]).T, "o-", color="tab:orange", linewidth=0.5, markersize=2)
left.set(title="density, and 60 draws of one chain", xlabel="x", ylabel="y")
points = np.asarray(draws[:, ::10]).reshape(-1, 2)
right.plot(*points.T, ".", markersize=1.5, alpha=0.5)
right.set(title="draws of all chains", xlabel="x", ylabel="y", xlim=(-3, 3), ylim=(-2, 7))
plt.show()
