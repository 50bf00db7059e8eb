"""jaxopt: minima, a root and a constrained problem, with implicit differentiation."""

import json

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

rng = np.random.default_rng(0)
features = jnp.asarray(rng.normal(size=(40, 5)), jnp.float32)
targets = features @ jnp.arange(5.0) + jnp.asarray(rng.normal(size=40), jnp.float32)


def ridge(w, weight, data):
    x, y = data
    return jnp.mean((x @ w - y) ** 2) + weight * jnp.sum(w**2)


def minimum(solver):
    def of(weight):
        return solver.run(jnp.zeros(5), weight, (features, targets)).params

    return of


descent = jaxopt.GradientDescent(fun=ridge, maxiter=400, tol=1e-4, implicit_diff=True)
lbfgs = jaxopt.LBFGS(fun=ridge, maxiter=60, tol=1e-4, implicit_diff=True)
by_descent = minimum(descent)(0.1)
by_lbfgs = minimum(lbfgs)(0.1)
derivative = jax.jacobian(minimum(lbfgs))(0.1)


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


valley = jaxopt.BFGS(fun=rosenbrock, maxiter=200, tol=1e-3).run(jnp.array([-1.2, 1.0])).params

bisection = jaxopt.Bisection(
    optimality_fun=lambda x, a: x**3 - x - a, lower=1.0, upper=2.0, tol=1e-6
)
root = lambda a: bisection.run(a=a).params
contraction = jaxopt.FixedPointIteration(
    fixed_point_fun=lambda x, a: jnp.cos(a * x), maxiter=100, tol=1e-6, implicit_diff=True
)
fixed = lambda a: contraction.run(jnp.float32(0.5), a).params

projected = jaxopt.ProjectedGradient(
    fun=lambda w, data: ridge(w, 0.0, data),
    projection=jaxopt.projection.projection_simplex,
    maxiter=200,
    tol=1e-4,
)
shares = projected.run(jnp.full(5, 0.2), data=(features, targets)).params
lasso = jaxopt.ProximalGradient(
    fun=lambda w, data: jnp.mean((data[0] @ w - data[1]) ** 2),
    prox=jaxopt.prox.prox_lasso,
    maxiter=200,
    tol=1e-4,
)
sparse = lasso.run(jnp.zeros(5), hyperparams_prox=0.9, data=(features, targets)).params
newton = jaxopt.GaussNewton(residual_fun=lambda p, t: p[0] * jnp.exp(p[1] * t) - 2.0 * jnp.exp(-t))
curve = newton.run(jnp.array([1.0, -0.5]), t=jnp.linspace(0.0, 1.0, 8)).params

print(
    json.dumps(
        {
            "descent": by_descent.tolist(),
            "lbfgs": by_lbfgs.tolist(),
            "derivative of the minimum": derivative.tolist(),
            "valley": valley.tolist(),
            "root": float(root(1.0)),
            "derivative of the root": float(jax.grad(root)(1.0)),
            "fixed point": float(fixed(1.0)),
            "derivative of the fixed point": float(jax.grad(fixed)(1.0)),
            "shares": shares.tolist(),
            "sparse": sparse.tolist(),
            "curve": curve.tolist(),
        }
    )
)
