"""GPJax: an exact Gaussian process, its objective, fitted and predicted."""

import json

import gpjax as gpx
import jax
import jax.numpy as jnp
import optax

jax.config.update("jax_enable_x64", True)
x = jnp.linspace(-3.0, 3.0, 20)[:, None]
data = gpx.Dataset(X=x, y=jnp.sin(2.0 * x))
prior = gpx.gps.Prior(
    mean_function=gpx.mean_functions.Constant(), kernel=gpx.kernels.RBF() + gpx.kernels.Matern32()
)
posterior = prior * gpx.likelihoods.Gaussian(num_datapoints=data.n)
before = -gpx.objectives.conjugate_mll(posterior, data)
fitted, history = gpx.fit(
    model=posterior,
    objective=lambda p, d: -gpx.objectives.conjugate_mll(p, d),
    train_data=data,
    optim=optax.adam(0.05),
    num_iters=20,
    key=jax.random.key(0),
    verbose=False,
)
latent = fitted.predict(jnp.linspace(-2.0, 2.0, 5)[:, None], train_data=data)
print(
    json.dumps(
        {
            "before": float(before),
            "history": history[::5].tolist(),
            "mean": latent.mean.tolist(),
            "variance": latent.variance.tolist(),
        }
    )
)
