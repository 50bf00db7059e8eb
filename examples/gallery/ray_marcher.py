"""Ray marcher

Renders shapes that a signed distance function describes. The colour of a pixel is a function of its
ray; `vmap` makes the image, and `grad` of the distance is the normal of a surface.

Method: Hart, *Sphere tracing: a geometric method for the antialiased ray tracing of implicit
surfaces*, The Visual Computer 12 (1996).
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
WIDTH, HEIGHT = (240, 160) if QUICK else (720, 480)
STEPS, FAR = 80, 20.0

# %% [markdown]
# ## Scene
#
# A distance function returns the distance of a point to the nearest surface. The minimum of two is
# their union, and a smooth minimum joins the shapes.


# %%
def sphere(point, centre, radius):
    return jnp.linalg.norm(point - centre) - radius


def torus(point, centre, large, small):
    x, y, z = point - centre
    return jnp.hypot(jnp.hypot(x, z) - large, y) - small


def smooth_min(a, b, width):
    share = jnp.clip(0.5 + 0.5 * (b - a) / width, 0.0, 1.0)
    return b + (a - b) * share - width * share * (1 - share)


def distance(point):
    ball = sphere(point, jnp.array([-0.9, 0.1, 0.0]), 0.9)
    drop = sphere(point, jnp.array([0.1, 0.55, 0.5]), 0.5)
    ring = torus(point, jnp.array([1.5, -0.1, 0.3]), 0.8, 0.25)
    ground = point[1] + 0.8
    return jnp.minimum(smooth_min(smooth_min(ball, drop, 0.4), ring, 0.15), ground)


# %% [markdown]
# ## Rays
#
# A step along a ray may be as long as the distance to the nearest surface.


# %%
def march(distance, origin, direction):
    def step(_, travelled):
        return jnp.minimum(travelled + distance(origin + travelled * direction), FAR)

    return lax.fori_loop(0, STEPS, step, 0.0)


def shadow(point, light):
    def step(_, state):
        travelled, share = state
        gap = distance(point + travelled * light)
        share = jnp.minimum(share, jnp.clip(10 * gap / travelled, 0.0, 1.0))
        return travelled + jnp.clip(gap, 0.02, 0.3), share

    return lax.fori_loop(0, 40, step, (0.05, 1.0))[1]


def normalized(v):
    return v / jnp.linalg.norm(v)


def colour(direction):
    travelled = march(distance, camera, direction)
    point = camera + travelled * direction
    normal = normalized(primax.grad(distance)(point))
    light = normalized(jnp.array([0.6, 0.9, 0.7]))
    checks = 0.35 + 0.25 * ((jnp.floor(point[0]) + jnp.floor(point[2])) % 2)
    ground = jnp.stack([checks, checks, checks])
    base = jnp.where(point[1] < -0.79, ground, 0.5 + 0.4 * jnp.cos(point + jnp.array([0, 1, 4.0])))
    diffuse = jnp.clip(normal @ light, 0.0, 1.0) * shadow(point + 1e-3 * normal, light)
    sky = jnp.array([0.55, 0.7, 0.9]) * (0.7 + 0.3 * direction[1])
    fog = jnp.exp(-0.02 * travelled**2)
    lit = base * (0.25 * sky + diffuse)
    return jnp.where(travelled >= FAR, sky, fog * lit + (1 - fog) * sky)


camera = jnp.array([0.6, 1.2, 4.5])
columns = jnp.linspace(-1.2, 1.2, WIDTH)
rows = jnp.linspace(0.45, -1.15, HEIGHT)
grid = jnp.stack([*jnp.meshgrid(columns, rows), jnp.full((HEIGHT, WIDTH), -2.0)], axis=-1)
directions = grid / jnp.linalg.norm(grid, axis=-1, keepdims=True)

# %% [markdown]
# ## Image

# %%
render = primax.jit(primax.vmap(primax.vmap(colour))).lower(directions).compile()
start = time.perf_counter()
image = np.asarray(render(directions))
seconds = time.perf_counter() - start
print(f"{WIDTH} x {HEIGHT} rays, {WIDTH * HEIGHT / seconds / 1e6:.2f} million rays per second")
assert np.isfinite(image).all()

# %% [markdown]
# ## Check
#
# For a sphere the length of a ray is known in closed form.


# %%
def exact(direction):
    middle = -(camera @ direction)
    return middle - jnp.sqrt(jnp.maximum(middle**2 - camera @ camera + 1.0, 0.0)), middle


ball = lambda point: sphere(point, jnp.zeros(3), 1.0)
towards = normalized(jnp.array([-0.05, -0.2, -1.0])) + 0.02 * directions[::8, ::8].reshape(-1, 3)
towards = towards / jnp.linalg.norm(towards, axis=1, keepdims=True)
lengths = primax.vmap(lambda d: march(ball, camera, d))(towards)
expected, _ = primax.vmap(exact)(towards)
error = float(jnp.max(jnp.abs(lengths - expected)))
print(f"largest error of a length {error:.1e}")
assert error < 1e-3

# %%
plt.figure(figsize=(8, 5.4), layout="constrained")
plt.imshow(np.clip(image, 0, 1) ** (1 / 2.2))
plt.axis("off")
plt.show()
