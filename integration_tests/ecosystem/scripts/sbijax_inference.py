"""sbijax: neural posteriors, likelihoods and ratios, and approximate Bayesian computation."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from sbijax import fmpe, nle, npe, nre, sabc, sample, simulate, smcabc, train
from sbijax.mcmc import make_sampler, nuts
from sbijax.nn import make_cnf, make_maf, make_mlp
from tensorflow_probability.substrates.jax import distributions as tfd

prior = tfd.JointDistributionNamed({"theta": tfd.Normal(jnp.zeros(2), 1.0)}, batch_ndims=0)
observed = jnp.array([0.5, -1.0])


def simulator(seed, theta):
    """The parameters with noise."""
    return theta["theta"] + 0.5 * tfd.Normal(0.0, 1.0).sample(theta["theta"].shape, seed=seed)


def distance(x, y):
    """The Euclidean distances of simulated data."""
    return jax.vmap(jnp.linalg.norm)(x - y)


data = simulate(jax.random.key(0), prior, simulator, n=100)
estimators = {
    "npe": npe(make_maf(2)),
    "fmpe": fmpe(make_cnf(2)),
    "nle": nle(make_maf(2)),
    "nre": nre(make_mlp()),
}
losses, posteriors = {}, {}
for name, estimator in estimators.items():
    parameters, info = train(jax.random.key(1), estimator, data, n_iter=3, batch_size=50)
    options = {"n_samples": 4}
    if name in ("nle", "nre"):
        sampler = make_sampler(nuts, prior=prior)
        options = {"sampler": sampler, "n_chains": 1, "n_samples": 8, "n_warmup": 5}
    draws, _ = sample(jax.random.key(2), estimator, parameters, observed, **options)
    losses[name] = info.losses
    posteriors[name] = draws["theta"][0, :2]

annealed, _ = sabc(prior, simulator).sample(
    jax.random.key(3), observed, n_particles=32, n_simulation=320
)
rounds, _ = smcabc(prior, simulator, lambda y: y, distance).sample(
    jax.random.key(4), observed, n_rounds=2, n_particles=50
)
answer = {
    "data": [data["y"][:2], data["theta"]["theta"][:2]],
    "losses": losses,
    "posteriors": posteriors,
    "annealed": jnp.mean(annealed["theta"], (0, 1)),
    "rounds": jnp.mean(rounds["theta"], (0, 1)),
}
print(json.dumps(jax.tree.map(lambda v: np.asarray(v).astype(np.float64).tolist(), answer)))
