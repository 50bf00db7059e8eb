"""NumPyro: SVI, NUTS, predictive samples, distributions and their transforms."""

import json

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide, log_likelihood
from numpyro.infer.util import log_density

x = jnp.linspace(-1.0, 1.0, 20)
y = 0.5 + 2.0 * x + 0.1 * jnp.sin(10.0 * x)


def model(x, y=None):
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.StudentT(4.0, 0.0, 1.0))
    s = numpyro.sample("s", dist.HalfNormal(1.0))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(a + b * x, s), obs=y)


values = {"a": 0.3, "b": 1.5, "s": 0.4}
density, trace = log_density(model, (x, y), {}, values)
guide = autoguide.AutoMultivariateNormal(model)
svi = SVI(model, guide, numpyro.optim.Adam(0.02), Trace_ELBO(num_particles=2))
fit = svi.run(jax.random.PRNGKey(0), 50, x, y, progress_bar=False)
mcmc = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
mcmc.run(jax.random.PRNGKey(1), x, y)
samples = mcmc.get_samples()
predicted = Predictive(model, guide=guide, params=fit.params, num_samples=5)(
    jax.random.PRNGKey(2), x
)
key = jax.random.PRNGKey(3)
families = {
    "beta": dist.Beta(2.0, 3.0),
    "dirichlet": dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])),
    "gamma": dist.Gamma(2.0, 1.5),
    "lkj": dist.LKJCholesky(3, 2.0),
    "negative binomial": dist.NegativeBinomial2(3.0, 2.0),
    "mixture": dist.MixtureSameFamily(
        dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.array([-1.0, 1.0]), 0.5)
    ),
    "von mises": dist.VonMises(0.0, 2.0),
    "truncated": dist.TruncatedNormal(0.0, 1.0, low=-0.5, high=1.0),
    "wishart": dist.WishartCholesky(4.0, jnp.eye(3)),
}
drawn = {}
for name, family in families.items():
    value = family.sample(key, (3,))
    drawn[name] = [jnp.ravel(value)[:3].tolist(), family.log_prob(value).tolist()]
pointwise = log_likelihood(model, samples, x, y)["y"]
print(
    json.dumps(
        {
            "density": float(density),
            "losses": fit.losses[::10].tolist(),
            "shapes": [list(samples["a"].shape), list(predicted["y"].shape)],
            "near": bool(abs(samples["b"].mean() - 2.0) < 0.5),
            "finite": bool(jnp.isfinite(pointwise).all()),
            "families": drawn,
        }
    )
)
