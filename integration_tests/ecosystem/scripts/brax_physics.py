"""Brax: rollouts of two backends of physics and a derivative through a step."""

import json

import jax
import jax.numpy as jnp
from brax import envs

results = {}
for backend in ("generalized", "positional"):
    env = envs.get_environment("inverted_pendulum", backend=backend)
    state = jax.jit(env.reset)(jax.random.PRNGKey(0))
    step = jax.jit(env.step)
    trace = []
    for i in range(8):
        state = step(state, jnp.array([0.3 * (-1) ** (i // 3)]))
        trace.append(state.obs.tolist())
    results[backend] = {"obs": trace, "reward": float(state.reward)}
print(json.dumps(results))
