"""N-body simulation

Two discs of stars meet. The force is the gradient of the potential energy, so only the energy is
written down; `scan` integrates with the leapfrog method, whose energy error stays bounded.

Method: leapfrog (Störmer-Verlet), with softened gravity as in Aarseth, *Gravitational N-Body
Simulations*, section 2.
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import lax, random

QUICK = "--quick" in sys.argv
STARS, STEPS = (120, 600) if QUICK else (300, 1200)  # of each disc
DURATION, SOFTENING = 24.0, 0.2
STEP = DURATION / STEPS

# %% [markdown]
# ## Energy and force
#
# Each disc has a heavy centre and light stars. The potential energy of a pair is
# `-m₁ m₂ / sqrt(r² + ε²)`.

# %%
masses = jnp.concatenate([jnp.ones(2), jnp.full(2 * STARS, 1e-4)])


def potential(positions):
    difference = positions[:, None] - positions[None]
    inverse = lax.rsqrt(jnp.sum(difference**2, axis=-1) + SOFTENING**2)
    pairs = masses[:, None] * masses * inverse
    return -0.5 * (jnp.sum(pairs) - jnp.sum(jnp.diagonal(pairs)))


def energy(positions, velocities):
    return 0.5 * jnp.sum(masses[:, None] * velocities**2) + potential(positions)


def acceleration(positions):
    return -primax.grad(potential)(positions) / masses[:, None]


# %% [markdown]
# ## Discs
#
# The stars begin on circles around their centre, whose attraction gives their speed.


# %%
def disc(key, centre, velocity):
    radius_key, angle_key = random.split(key)
    radius = random.uniform(radius_key, (STARS,), minval=0.6, maxval=2.5)
    angle = random.uniform(angle_key, (STARS,), maxval=2 * jnp.pi)
    direction = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    speed = radius / (radius**2 + SOFTENING**2) ** 0.75
    across = jnp.stack([-direction[:, 1], direction[:, 0]], axis=1)
    return centre + radius[:, None] * direction, velocity + speed[:, None] * across


centres = jnp.array([[-4.0, -2.0], [4.0, 2.0]])
drifts = jnp.array([[0.25, 0.0], [-0.25, 0.0]])
stars = [disc(k, c, v) for k, c, v in zip(random.split(random.key(0)), centres, drifts)]
positions = jnp.concatenate([centres, *[p for p, _ in stars]])
velocities = jnp.concatenate([drifts, *[v for _, v in stars]])

# %% [markdown]
# ## Simulation


# %%
@primax.jit
def simulate(positions, velocities):
    def step(state, _):
        positions, velocities = state
        velocities = velocities + 0.5 * STEP * acceleration(positions)
        positions = positions + STEP * velocities
        velocities = velocities + 0.5 * STEP * acceleration(positions)
        return (positions, velocities), (positions, energy(positions, velocities))

    return lax.scan(step, (positions, velocities), length=STEPS)[1]


path, energies = simulate(positions, velocities)
start = energy(positions, velocities)
error = float(jnp.max(jnp.abs(energies / start - 1)))
print(f"{len(masses)} bodies, {STEPS} steps, {len(masses) ** 2 * STEPS / 1e6:.0f} million pairs")
print(f"largest relative error of the energy {error:.1e}")
assert error < 2e-2 and bool(jnp.all(jnp.isfinite(path)))

# %%
figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
colours = np.repeat(["tab:blue", "tab:orange"], STARS)
for time, ax in zip((0.05, 0.35, 0.6, 0.95), axes):
    frame = np.asarray(path[int(time * STEPS)])
    ax.scatter(*frame[2:].T, s=2, c=colours)
    ax.plot(*frame[:2].T, "k*", markersize=8)
    ax.set(xlim=(-7, 7), ylim=(-7, 7), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"time {time * DURATION:.0f}")
plt.show()
