"""Lattice Boltzmann fluid

The flow of a fluid around a cylinder, on a lattice with nine velocities. A step is a few operations
on whole arrays; `scan` runs thousands in one compiled function.

Method: Krüger et al., *The Lattice Boltzmann Method*, chapters 3 to 5.
"""

# %%
import sys
import time

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import lax

QUICK = "--quick" in sys.argv
WIDTH, HEIGHT, STEPS = (180, 60, 4000) if QUICK else (300, 100, 15000)
SPEED, REYNOLDS = 0.1, 120
RADIUS = HEIGHT // 9

# %% [markdown]
# ## One step
#
# `f[i, x, y]` is the density of particles with velocity `VELOCITIES[i]`. A step moves them to the
# next node (`roll`), and relaxes them towards their equilibrium.

# %%
VELOCITIES = np.array(
    [[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]]
)
WEIGHTS = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)[:, None, None]
OPPOSITE = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])


def equilibrium(density, velocity):
    along = jnp.tensordot(jnp.asarray(VELOCITIES, jnp.float32), velocity, 1)
    square = jnp.sum(velocity**2, axis=0)
    return WEIGHTS * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * square)


def moments(f):
    density = f.sum(axis=0)
    return density, jnp.tensordot(jnp.asarray(VELOCITIES.T, jnp.float32), f, 1) / density


def collide(f, time_constant):
    return f + (equilibrium(*moments(f)) - f) / time_constant


def move(f):
    return jnp.stack([jnp.roll(f[i], VELOCITIES[i], axis=(0, 1)) for i in range(9)])


# %% [markdown]
# ## Check: viscosity
#
# The theory says that a shear wave decays as `exp(-ν k² t)`, where the viscosity ν is
# `(time_constant - 1/2) / 3`.

# %%
wave_number = 2 * jnp.pi / 64
profile = 0.01 * jnp.sin(wave_number * jnp.arange(64))
wave = jnp.stack([jnp.zeros((8, 64)) + profile, jnp.zeros((8, 64))])


@primax.jit
def decay(time_constant):
    step = lambda f, _: (collide(move(f), time_constant), None)
    f, _ = lax.scan(step, equilibrium(jnp.ones((8, 64)), wave), length=500)
    return jnp.abs(moments(f)[1][0]).max() / 0.01


measured = float(-jnp.log(decay(0.8)) / (wave_number**2 * 500))
print(f"viscosity {measured:.4f}, theory {(0.8 - 0.5) / 3:.4f}")
assert abs(measured / 0.1 - 1) < 0.02

# %% [markdown]
# ## Flow around a cylinder
#
# The fluid enters on the left with a fixed velocity. Particles that meet the cylinder return to
# where they came from.

# %%
viscosity = SPEED * 2 * RADIUS / REYNOLDS
TIME_CONSTANT = 3 * viscosity + 0.5
x, y = jnp.meshgrid(jnp.arange(WIDTH), jnp.arange(HEIGHT), indexing="ij")
cylinder = (x - WIDTH // 5) ** 2 + (y - HEIGHT // 2) ** 2 < RADIUS**2
ripple = 1 + 0.01 * jnp.sin(2 * jnp.pi * y / HEIGHT)  # a small asymmetry begins the vortices
inflow = jnp.stack([SPEED * ripple, jnp.zeros((WIDTH, HEIGHT))])
entering = equilibrium(jnp.ones((1, HEIGHT)), inflow[:, :1])


def flow_step(f, _):
    f = move(f)
    f = f.at[:, 0].set(entering[:, 0])
    f = f.at[:, -1].set(f[:, -2])  # the right end is open
    f = jnp.where(cylinder, f[OPPOSITE], collide(f, TIME_CONSTANT))
    return f, None


@primax.jit
def simulate(f):
    def frame(f, _):
        f, _ = lax.scan(flow_step, f, length=STEPS // 40)
        velocity = jnp.where(cylinder, 0.0, moments(f)[1])
        return f, velocity

    return lax.scan(frame, f, length=40)


f = equilibrium(jnp.ones((WIDTH, HEIGHT)), inflow)
compiled = simulate.lower(f).compile()
start = time.perf_counter()
f, frames = primax.block_until_ready(compiled(f))
rate = WIDTH * HEIGHT * STEPS / (time.perf_counter() - start) / 1e6
velocity = np.asarray(frames[-1])
across = np.asarray(frames[20:, 1, WIDTH // 2, HEIGHT // 2])  # behind the cylinder
print(f"{STEPS} steps, {rate:.0f} million nodes per second")
print(f"largest speed {np.linalg.norm(velocity, axis=0).max() / SPEED:.2f} of that of the inflow")
assert np.isfinite(velocity).all() and 1 < np.linalg.norm(velocity, axis=0).max() / SPEED < 3

# %%
vorticity = np.gradient(velocity[1], axis=0) - np.gradient(velocity[0], axis=1)
figure, (upper, lower) = plt.subplots(2, 1, figsize=(9, 6.4), layout="constrained")
speed = np.ma.masked_where(np.asarray(cylinder), np.linalg.norm(velocity, axis=0))
upper.imshow(speed.T, cmap="viridis")
upper.set(title="speed", xticks=[], yticks=[])
swirl = np.ma.masked_where(np.asarray(cylinder), vorticity)
lower.imshow(swirl.T, cmap="RdBu", vmin=-0.02, vmax=0.02)
lower.set(title="vorticity", xticks=[], yticks=[])
plt.show()
