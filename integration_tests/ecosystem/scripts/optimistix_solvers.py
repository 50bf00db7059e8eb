"""Optimistix: roots, least squares, minima and fixed points, with derivatives and vmap."""

import json

import jax
import jax.numpy as jnp
import optax
import optimistix as optx

answers = {}


# Roots.
def kepler(anomaly, args):
    mean, eccentricity = args
    return anomaly - eccentricity * jnp.sin(anomaly) - mean


@jax.jit
def anomaly(mean, eccentricity):
    solver = optx.Newton(rtol=1e-5, atol=1e-5)
    return optx.root_find(kepler, solver, mean, (mean, eccentricity)).value


answers["newton"] = anomaly(1.0, 0.3)
answers["derivatives of the root"] = jax.grad(anomaly, argnums=(0, 1))(1.0, 0.3)
answers["mapped roots"] = jax.vmap(anomaly, in_axes=(0, None))(jnp.linspace(0.1, 3.0, 5), 0.3)
answers["bisection"] = optx.root_find(
    lambda x, _: x**3 - 2.0,
    optx.Bisection(rtol=1e-5, atol=1e-5),
    1.0,
    options={"lower": 0.0, "upper": 2.0},
).value
answers["chord"] = optx.root_find(
    lambda x, _: (x[0] ** 2 + x[1] - 3.0, x[0] - x[1] + 1.0),
    optx.Chord(rtol=1e-5, atol=1e-5),
    (jnp.float32(1.5), jnp.float32(2.0)),
    max_steps=100,
).value

# Least squares.
times = jnp.linspace(0.0, 2.0, 12)
observed = 2.5 * jnp.exp(-1.3 * times) + 0.01 * jnp.cos(20.0 * times)


def residuals(params, observed):
    return params["scale"] * jnp.exp(-params["rate"] * times) - observed


start = {"scale": jnp.float32(1.0), "rate": jnp.float32(0.5)}
for name, solver in {
    "levenberg-marquardt": optx.LevenbergMarquardt(rtol=1e-5, atol=1e-5),
    "gauss-newton": optx.GaussNewton(rtol=1e-5, atol=1e-5),
    "dogleg": optx.Dogleg(rtol=1e-5, atol=1e-5),
}.items():
    answers[name] = optx.least_squares(residuals, solver, start, observed).value

# Minima.
valley = lambda p, scale: (1.0 - p[0]) ** 2 + scale * (p[1] - p[0] ** 2) ** 2
for name, solver in {
    "bfgs": optx.BFGS(rtol=1e-4, atol=1e-4),
    "nonlinear conjugate gradients": optx.NonlinearCG(rtol=1e-5, atol=1e-5),
    "nelder-mead": optx.NelderMead(rtol=1e-4, atol=1e-4),
    "optax": optx.OptaxMinimiser(optax.adam(0.05), rtol=1e-6, atol=1e-6),
}.items():
    solution = optx.minimise(valley, solver, jnp.array([-0.5, 0.8]), 10.0, max_steps=5000)
    answers[name] = solution.value

# Fixed points.
contraction = lambda y, rate: jnp.cos(rate * y)


def fixed_point(rate):
    solver = optx.FixedPointIteration(rtol=1e-6, atol=1e-6)
    return optx.fixed_point(contraction, solver, 0.5, rate, max_steps=500).value


answers["fixed point"] = fixed_point(0.9)
answers["derivative of the fixed point"] = jax.grad(fixed_point)(0.9)

numbers = jax.tree_util.tree_map(lambda a: jnp.asarray(a).tolist(), answers)
stuck = optx.root_find(
    lambda x, _: x**2 + 1.0, optx.Newton(1e-5, 1e-5), 0.7, max_steps=8, throw=False
)
numbers["without a root"] = bool(stuck.result != optx.RESULTS.successful)
print(json.dumps(numbers))
