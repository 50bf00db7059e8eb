"""BlackJAX: window adaptation, NUTS, HMC, MALA, SGLD and tempered sequential Monte Carlo."""

import json

import blackjax
import jax
import jax.numpy as jnp

centre = jnp.array([1.0, -2.0])


def log_density(x):
    return -0.5 * jnp.sum(((x - centre) / jnp.array([0.5, 2.0])) ** 2)


def run(kernel, state, key, count):
    def step(state, key):
        state, _ = kernel(key, state)
        return state, state.position

    return jax.lax.scan(step, state, jax.random.split(key, count))[1]


keys = jax.random.split(jax.random.key(0), 6)
start = jnp.zeros(2)
warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
(state, parameters), _ = jax.jit(lambda k: warmup.run(k, start, 20))(keys[0])
nuts = blackjax.nuts(log_density, step_size=0.5, inverse_mass_matrix=jnp.array([0.25, 4.0]))
hmc = blackjax.hmc(log_density, 0.4, jnp.ones(2), 5)
mala = blackjax.mala(log_density, 0.1)
results = {"adapted": [float(parameters["step_size"]) > 0, state.position.shape]}
for name, algorithm, key in (
    ("nuts", nuts, keys[1]),
    ("hmc", hmc, keys[2]),
    ("mala", mala, keys[3]),
):
    sample = jax.jit(lambda s, k, a=algorithm: run(a.step, s, k, 20))
    positions = sample(algorithm.init(start), key)
    results[name] = [positions[0].tolist(), positions.mean(0).tolist()]
smc = blackjax.adaptive_tempered_smc(
    lambda x: -0.5 * jnp.sum(x**2) / 9.0,
    log_density,
    blackjax.hmc.build_kernel(),
    blackjax.hmc.init,
    {
        "step_size": jnp.full(1, 0.3),
        "inverse_mass_matrix": jnp.ones((1, 2)),
        "num_integration_steps": jnp.full(1, 3),
    },
    blackjax.smc.resampling.systematic,
    0.5,
    num_mcmc_steps=1,
)
particles = smc.init(3.0 * jax.random.normal(keys[4], (64, 2)))
particles, _ = jax.jit(smc.step)(keys[5], particles)
results["smc"] = [float(particles.tempering_param), particles.particles.mean(0).tolist()]
print(json.dumps(results))
