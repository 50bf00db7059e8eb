"""tinygp: Gaussian processes by dense and quasiseparable kernels, conditioned and fitted."""

import json

import jax
import jax.numpy as jnp
import tinygp
from tinygp import GaussianProcess, kernels

jax.config.update("jax_enable_x64", True)
x = jnp.sort(jax.random.uniform(jax.random.key(0), (30,), minval=0.0, maxval=10.0))
y = jnp.sin(x)
new = jnp.linspace(0.0, 10.0, 5)


def process(theta):
    kernel = jnp.exp(theta[0]) * kernels.ExpSquared(jnp.exp(theta[1])) + 0.1 * kernels.Matern32(2.0)
    return GaussianProcess(kernel, x, diag=0.05, mean=theta[2])


def fast(theta):
    kernel = kernels.quasisep.SHO(omega=jnp.exp(theta[0]), quality=1.5, sigma=1.0)
    return GaussianProcess(kernel + kernels.quasisep.Matern52(jnp.exp(theta[1])), x, diag=0.05)


results = {}
for name, make in (("dense", process), ("quasiseparable", fast)):
    theta = jnp.array([0.1, 0.2, 0.3])
    value, grad = jax.jit(jax.value_and_grad(lambda t, m=make: -m(t).log_probability(y)))(theta)
    conditioned = make(theta).condition(y, new)
    sample = make(theta).sample(jax.random.key(1))
    results[name] = {
        "value": float(value),
        "grad": grad.tolist(),
        "log probability": float(conditioned.log_probability),
        "mean": conditioned.gp.loc.tolist(),
        "variance": conditioned.gp.variance.tolist(),
        "sample": sample[:3].tolist(),
    }
transformed = kernels.Matern52()
scaled = tinygp.transforms.Linear(jnp.array([0.5, 2.0]), transformed)
points = jax.random.normal(jax.random.key(2), (4, 2))
results["matrix"] = scaled(points, points).tolist()
print(json.dumps(results))
