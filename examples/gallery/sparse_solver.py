"""Sparse solver

Solves Poisson's equation on a grid with a sparse matrix and conjugate gradients, and finds a source
from measurements: the derivative of a solution is another solution with the transposed matrix.

Method: Hestenes and Stiefel, *Methods of conjugate gradients for solving linear systems* (1952).
"""

# %%
import sys
import time

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import lax, random
from primax.experimental.sparse import BCOO
from primax.scipy.sparse import linalg

QUICK = "--quick" in sys.argv
N, STEPS = (48, 150) if QUICK else (96, 300)

# %% [markdown]
# ## Matrix
#
# Five points of the grid take part in each equation, so of `N⁴` elements about `5 N²` are stored.


# %%
def laplacian(n):
    number = np.arange(n * n).reshape(n, n)
    neighbours = [(number[1:], number[:-1]), (number[:, 1:], number[:, :-1])]
    pairs = [np.stack([a.ravel(), b.ravel()], 1) for a, b in neighbours]
    off = np.concatenate([*pairs, *[p[:, ::-1] for p in pairs]])
    indices = np.concatenate([np.repeat(np.arange(n * n)[:, None], 2, 1), off])
    data = np.concatenate([np.full(n * n, 4.0), np.full(len(off), -1.0)]) * (n + 1) ** 2
    matrix = BCOO((jnp.asarray(data, jnp.float32), jnp.asarray(indices)), shape=(n * n, n * n))
    return matrix.sort_indices()


matrix = laplacian(N)
print(f"{matrix.shape[0]:,} unknowns, {matrix.nse:,} of {matrix.shape[0] ** 2:,} elements stored")


@primax.jit
def solve(source):
    return linalg.cg(lambda v: matrix @ v, source, tol=1e-6, maxiter=2000)[0]


# %% [markdown]
# ## Check
#
# For the source `2 π² sin(πx) sin(πy)` the solution is `sin(πx) sin(πy)`.

# %%
x, y = jnp.meshgrid(*[jnp.linspace(0, 1, N + 2)[1:-1]] * 2, indexing="ij")
exact = jnp.sin(jnp.pi * x) * jnp.sin(jnp.pi * y)
primax.block_until_ready(solve(exact.ravel()))
start = time.perf_counter()
solution = primax.block_until_ready(solve((2 * jnp.pi**2 * exact).ravel()))
seconds = time.perf_counter() - start
error = float(jnp.abs(solution.reshape(N, N) - exact).max())
print(f"largest error {error:.1e} (discretization: {jnp.pi**2 / 12 / (N + 1) ** 2:.1e})")
assert error < 2 * jnp.pi**2 / 12 / (N + 1) ** 2 + 1e-4

# %% [markdown]
# ## A source from measurements
#
# The solution is known at some points only. Gradient descent with a penalty for rough sources finds
# a source that explains them. `grad` through `cg` costs one more solution.

# %%
true_source = 60 * jnp.exp(-80 * ((x - 0.3) ** 2 + (y - 0.6) ** 2))
true_source += 40 * jnp.exp(-120 * ((x - 0.7) ** 2 + (y - 0.3) ** 2))
places = random.choice(random.key(0), N * N, (N * N // 12,), replace=False)
measured = solve(true_source.ravel())[places]


def loss(source):
    fit = jnp.sum((solve(source)[places] - measured) ** 2)
    return 1e3 * fit + 1e-9 * source @ (matrix @ source)


@primax.jit
def descend(source):
    # Adam's rule, written out
    def step(carry, i):
        source, mean, square = carry
        value, gradient = primax.value_and_grad(loss)(source)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        move = mean / (1 - 0.9 ** (i + 1)) / (jnp.sqrt(square / (1 - 0.99 ** (i + 1))) + 1e-6)
        return (jnp.maximum(source - 1.5 * move, 0.0), mean, square), value

    zeros = jnp.zeros_like(source)
    (source, _, _), values = lax.scan(step, (source, zeros, zeros), jnp.arange(STEPS))
    return source, values


source, values = descend(jnp.zeros(N * N))
distance = jnp.linalg.norm(source - true_source.ravel()) / jnp.linalg.norm(true_source)
print(f"misfit from {float(values[0]):.1e} to {float(values[-1]):.1e} in {STEPS} steps")
print(f"relative error of the source {float(distance):.0%}")
assert values[-1] < 0.05 * values[0] and distance < 0.6

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
fields = (true_source, solve(true_source.ravel()), source)
titles = ("true source", "solution, and measured points", "source from the measurements")
for ax, values, title in zip(axes, fields, titles):
    image = ax.imshow(values.reshape(N, N).T, origin="lower", cmap="magma")
    ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=ax, shrink=0.8)
axes[1].plot(places // N, places % N, "w.", markersize=1.5)
plt.show()
