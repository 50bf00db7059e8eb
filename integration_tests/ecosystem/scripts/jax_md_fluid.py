"""JAX MD: a Lennard-Jones fluid with neighbor lists: energy, forces, minimisation, dynamics."""

import json

import jax
import jax.numpy as jnp
from jax_md import energy, minimize, quantity, simulate, space

jax.config.update("jax_enable_x64", True)
box = 6.0
displacement, shift = space.periodic(box)
grid = jnp.stack(jnp.meshgrid(*[jnp.arange(4.0)] * 3), -1).reshape(-1, 3) * 1.5
start = grid + 0.1 * jax.random.normal(jax.random.PRNGKey(0), grid.shape)
plain = energy.lennard_jones_pair(displacement)
neighbor_fn, listed = energy.lennard_jones_neighbor_list(
    displacement, box, r_cutoff=2.4, r_onset=2.0, dr_threshold=0.2
)
neighbors = neighbor_fn.allocate(start)
force = jax.jit(quantity.force(listed))(start, neighbor=neighbors)
init, apply = minimize.fire_descent(plain, shift, dt_start=1e-3)
state = init(start)
apply = jax.jit(apply)
for _ in range(20):
    state = apply(state)
results = {
    "energy": float(plain(start)),
    "listed": float(listed(start, neighbor=neighbors)),
    "force": float(jnp.linalg.norm(force)),
    "minimised": float(plain(state.position)),
    "pressure": float(quantity.pressure(plain, start, box)),
}
for name in ("nve", "nvt_nose_hoover"):
    more = (0.5,) if name == "nvt_nose_hoover" else ()
    init, apply = getattr(simulate, name)(plain, shift, 1e-3, *more)
    first = (0.5,) if name == "nve" else ()
    state = init(jax.random.PRNGKey(1), state.position, *first)
    apply = jax.jit(apply)
    for _ in range(10):
        state = apply(state)
    results[name] = [float(plain(state.position)), float(jnp.linalg.norm(state.momentum))]
print(json.dumps(results))
