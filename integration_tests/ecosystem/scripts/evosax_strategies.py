"""evosax: evolution strategies on the sphere function."""

import json

import jax
import jax.numpy as jnp
from evosax import algorithms

results = {}
for name in ("CMA_ES", "Open_ES", "SimpleGA", "DifferentialEvolution", "PSO", "SNES", "xNES"):
    strategy = getattr(algorithms, name)
    population = 8
    if name in ("SimpleGA", "DifferentialEvolution", "PSO"):
        start = jax.random.normal(jax.random.key(1), (population, 3))
        es = strategy(population_size=population, solution=jnp.zeros(3))
        params = es.default_params
        state = es.init(jax.random.key(0), start, jnp.sum(start**2, -1), params)
    else:
        es = strategy(population_size=population, solution=jnp.zeros(3))
        params = es.default_params
        state = es.init(jax.random.key(0), jnp.ones(3), params)

    def step(state, key, es=es, params=params):
        first, second = jax.random.split(key)
        population, state = es.ask(first, state, params)
        fitness = jnp.sum((population - 0.5) ** 2, -1)
        state, _ = es.tell(second, population, fitness, state, params)
        return state, fitness.min()

    _, best = jax.jit(lambda s, k, f=step: jax.lax.scan(f, s, k))(
        state, jax.random.split(jax.random.key(2), 10)
    )
    results[name] = best.tolist()
print(json.dumps(results))
