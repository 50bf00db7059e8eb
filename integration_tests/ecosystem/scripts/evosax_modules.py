"""evosax: every algorithm, shapings of fitness, restarts, problems and networks."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from evosax import algorithms
from evosax.core import fitness_shaping, kernel, optimizer, restart
from evosax.problems import (
    CNN,
    MLP,
    BBOBProblem,
    GymnaxProblem,
    MetaBBOBProblem,
    bbob_fns,
    identity_output_fn,
    tanh_output_fn,
)
from evosax.problems.bbob.bbob_noise import NoiseModel

results = {}


def record(name, *values):
    leaves = [x for x in jax.tree.leaves(values) if not isinstance(x, jax.Array) or not (
        jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key))]  # fmt: skip
    arrays = [np.nan_to_num(np.asarray(x, np.float64), posinf=1e6, neginf=-1e6) for x in leaves]
    results[name] = [v.ravel().tolist() if v.size < 10 else [v.sum(), abs(v).sum()] for v in arrays]


# Algorithms: ask and tell, with the population's best fitness
tree = {"a": jnp.zeros(2), "b": jnp.zeros(())}
size = 8


def normal(key, shape=()):
    return jax.tree.map(lambda x: jax.random.normal(key, (*shape, *x.shape)), tree)


def sphere(population):
    return sum(jnp.sum((x.reshape(len(x), -1) - 0.5) ** 2, -1) for x in jax.tree.leaves(population))


for name, algorithm in algorithms.algorithms.items():
    options, solution = {}, tree
    if name in ("SV_CMA_ES", "SV_Open_ES"):
        options, solution = {"num_populations": 2}, jnp.zeros(3)
    elif name == "RandomSearch":
        options = {"sampling_fn": normal}
    es = algorithm(population_size=size, solution=solution, **options)
    params = es.default_params
    first, key = jax.random.split(jax.random.key(1))
    if name in algorithms.population_based_algorithms:
        start = normal(first, (size,))
        state = es.init(key, start, sphere(start), params)
    elif name in ("SV_CMA_ES", "SV_Open_ES"):
        state = es.init(key, jax.random.normal(first, (2, 3)), params)
    else:
        state = es.init(key, jax.tree.map(lambda x: x + 1.0, solution), params)

    def step(state, key, es=es, params=params):
        asked, told = jax.random.split(key)
        population, state = es.ask(asked, state, params)
        fitness = sphere(population)
        state, _ = es.tell(told, population, fitness, state, params)
        return state, fitness.min()

    state, best = jax.jit(lambda s, k, f=step: jax.lax.scan(f, s, k))(
        state, jax.random.split(key, 4)
    )
    record(name, best, state.best_fitness, state.best_solution)

# Fitness shaping, kernels, optimizers
fitness = jnp.array([3.0, -1.0, 2.0, 0.5])
population = jnp.arange(8.0).reshape(4, 2)
for name in ("identity", "standardize", "normalize", "centered_rank"):
    shape = getattr(fitness_shaping, f"{name}_fitness_shaping_fn")
    record(f"shaping, {name}", shape(population, fitness, None, None))
    decayed = fitness_shaping.add_weight_decay(shape, 0.1)
    record(f"shaping, {name}, decayed", decayed(population, fitness, None, None))
Parameters = type("Parameters", (), {"kernel_std": 0.7, "weights": jnp.array([0.4, 0.3, 0.2, 0.1])})
record("shaping, weights", fitness_shaping.weights_fitness_shaping_fn(
    population, fitness, None, Parameters))  # fmt: skip
record(
    "kernel", jax.value_and_grad(kernel.kernel_rbf)(population[0], population[1] - 1, Parameters)
)
clipup = optimizer.clipup(learning_rate=0.1, max_velocity=0.3)
state, x = clipup.init(fitness), fitness
for _ in range(3):
    updates, state = clipup.update(x, state, x)
    x = optax.apply_updates(x, updates)
record("clipup", x)

# Restarts
es = algorithms.CMA_ES(population_size=8, solution=jnp.zeros(2))
key = jax.random.key(3)
state = es.init(key, jnp.ones(2), es.default_params)
population, state = es.ask(key, state, es.default_params)
state, _ = es.tell(key, population, jnp.sum(population**2, -1), state, es.default_params)
simple = restart.SimpleRestart((restart.spread_cond, restart.cma_cond))
restarted = simple.init()
record("restart, asked", simple.should_restart(
    population, jnp.zeros(8), state, es.default_params, restarted))  # fmt: skip
state, restarted = simple.restart(key, es, state, es.default_params, restarted)
record("restart, simple", state, restarted)
spread = restart.FitnessStdRestartParams()
record("restart, deviation", restart.fitness_std_cond(
    population, fitness, state, es.default_params, restarted, spread))  # fmt: skip

# Problems
x = jnp.array([[0.3, -0.7, 1.1], [2.0, 0.1, -1.5]])
for name in bbob_fns:
    problem = BBOBProblem(name, num_dims=3, seed=1)
    state = problem.init(jax.random.key(2))
    value, _, _ = problem.eval(jax.random.key(4), x, state)
    record(f"problem, {name}", value)
meta = MetaBBOBProblem(["sphere", "rastrigin", "gallagher_101_me"], 2, 4)
parameters = meta.sample_params(jax.random.key(5))
state = meta.init(jax.random.key(6), parameters)
record("problem, meta", meta.eval(jax.random.key(7), jnp.ones((2, 4)), state, parameters)[0])
for name in ("noiseless", "gaussian", "uniform", "cauchy", "additive"):
    noise = NoiseModel([name])
    parameters = noise.sample_params(jax.random.key(1))
    record(f"noise, {name}", noise.apply(jax.random.key(2), jnp.arange(1.0, 4.0), parameters))
policy = MLP(layer_sizes=(4, 2))
environment = GymnaxProblem("CartPole-v1", policy, episode_length=12, num_rollouts=2)
state = environment.init(jax.random.key(8))
weights = jax.tree.map(lambda p: jnp.stack([p, 2 * p]), environment.sample(jax.random.key(9)))
record("problem, gymnax", environment.eval(jax.random.key(10), weights, state)[0])

# Networks
net = CNN((2, 3), ((3, 3), (2, 2)), ((1, 1), (2, 2)), (4, 2), output_fn=identity_output_fn)
image = jax.random.normal(jax.random.key(0), (2, 6, 6, 1))
weights = net.init(jax.random.key(1), image)
record("network", net.apply(weights, image), jax.grad(lambda w: net.apply(w, image).sum())(weights))
dense = MLP((3, 2), output_fn=tanh_output_fn, use_bias=False)
record("dense", dense.init_with_output(jax.random.key(1), x))
print(json.dumps(results))
