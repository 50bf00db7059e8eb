"""PyMC on jax: log densities and cumulative functions of distributions, models, a sampler."""

import json
import warnings

import jax
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.sampling.jax import get_jaxified_logp, sample_numpyro_nuts

warnings.filterwarnings("ignore")
results = {}
weights = np.array([0.2, 0.3, 0.5])
spread = np.array([[1.5, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 2.0]])
CONTINUOUS = {
    "AsymmetricLaplace": (0.5, 1.2, 0.3), "Beta": (2.0, 3.0), "Cauchy": (0.1, 1.5),
    "ChiSquared": (3.0,), "ExGaussian": (0.1, 1.0, 0.5), "Exponential": (2.0,), "Flat": (),
    "Gamma": (2.0, 1.5), "Gumbel": (0.1, 1.3), "HalfCauchy": (1.5,), "HalfNormal": (1.5,),
    "HalfStudentT": (3.0, 1.5), "InverseGamma": (2.0, 1.5), "Kumaraswamy": (2.0, 3.0),
    "Laplace": (0.1, 1.3), "Logistic": (0.1, 1.3), "LogitNormal": (0.1, 1.3),
    "LogNormal": (0.1, 1.3), "Moyal": (0.1, 1.3), "Normal": (0.1, 1.3), "Pareto": (2.0, 0.1),
    "Rice": (0.5, 1.2), "SkewNormal": (0.1, 1.3, 2.0),
    "SkewStudentT": (2.0, 3.0, 0.1, 1.3), "StudentT": (3.0, 0.1, 1.3),
    "Triangular": (0.0, 1.0, 0.4), "TruncatedNormal": (0.1, 1.3, 0.0, 2.0), "Uniform": (0.0, 2.0),
    "VonMises": (0.1, 1.3), "Wald": (1.0, 2.0), "Weibull": (2.0, 1.5),
}  # fmt: skip
DISCRETE = {
    "Bernoulli": (0.3,), "BetaBinomial": (2.0, 3.0, 5), "Binomial": (5, 0.3),
    "Categorical": (weights,), "DiscreteUniform": (0, 4), "DiscreteWeibull": (0.5, 1.2),
    "Geometric": (0.3,), "HyperGeometric": (9, 4, 3), "NegativeBinomial": (2.0, 3.0),
    "OrderedLogistic": (0.3, np.array([-1.0, 1.0])), "Poisson": (2.0,),
    "ZeroInflatedBinomial": (0.4, 5, 0.3), "ZeroInflatedNegativeBinomial": (0.4, 2.0, 3.0),
    "ZeroInflatedPoisson": (0.4, 2.0), "HurdlePoisson": (0.4, 2.0),
}  # fmt: skip
VECTORS = {
    "Dirichlet": ((2 * weights,), weights[::-1].copy()), "MvNormal": ((weights, spread), weights),
    "MvStudentT": ((3.0, weights, spread), weights),
    "Multinomial": ((4, weights), np.array([1, 1, 2])),
    "DirichletMultinomial": ((4, 2 * weights), np.array([1, 1, 2])),
    "StickBreakingWeights": ((2.0, 2), weights), "Wishart": ((4.0, spread), spread + 0.1),
}  # fmt: skip
KEYWORDS = {
    "ExGaussian": ("mu", "sigma", "nu"), "MvStudentT": ("nu", "mu", "scale"),
    "SkewStudentT": ("a", "b", "mu", "sigma"), "StudentT": ("nu", "mu", "sigma"),
    "TruncatedNormal": ("mu", "sigma", "lower", "upper"),
}  # fmt: skip


def record(name, outputs, inputs=(), values=()):
    """Compile outputs for jax; record their values."""
    answers = pytensor.function(list(inputs), outputs, mode="JAX")(*values)
    results[name] = [np.asarray(answer).tolist() for answer in answers]


def density(name, arguments, value, function=pm.logp, differentiable=True):
    """Record a function of a distribution at a value, and its gradient by value and parameters."""
    at = pt.as_tensor(value).type("at")
    parameters = [pt.as_tensor(a).type(f"p{n}") for n, a in enumerate(arguments)]
    cls = getattr(pm, name)
    keywords = KEYWORDS.get(name)
    variable = cls.dist(**dict(zip(keywords, parameters))) if keywords else cls.dist(*parameters)
    out = function(variable, at).sum()
    floats = [x for x in (at, *parameters) if x.dtype == "float64" and differentiable]
    grads = pt.grad(out, floats, disconnected_inputs="ignore")
    record(f"{function.__name__} {name}", [out, *grads], [at, *parameters], [value, *arguments])


for name, arguments in CONTINUOUS.items():
    density(name, arguments, np.array([0.3, 0.6]))
for name, arguments in DISCRETE.items():
    density(name, arguments, np.array([0, 1]) if name != "Geometric" else np.array([1, 3]))
for name, (arguments, value) in VECTORS.items():
    density(name, arguments, value)
for name in ("Normal", "Exponential", "Gamma", "Gumbel", "Laplace", "StudentT", "Weibull", "Beta"):
    density(name, CONTINUOUS[name], np.array([0.3, 0.6]), pm.logcdf, False)
for name in ("Normal", "Exponential", "Laplace", "Cauchy", "Logistic", "Uniform", "Pareto"):
    density(name, CONTINUOUS[name], np.array([0.3, 0.6]), pm.icdf)
for name in ("Poisson", "Binomial", "Geometric", "Bernoulli"):
    density(name, DISCRETE[name], np.array([1, 2]), pm.logcdf, False)

# Models: transformed parameters, mixtures, censored data, time series, Gaussian processes
x = np.linspace(-1.0, 1.0, 12)
y = 0.5 + 2.0 * x + 0.1 * np.sin(9 * x)


def linear():
    a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 2.0)
    pm.Normal("y", a + b * x, pm.HalfNormal("s", 1.0), observed=y)


def mixture():
    w = pm.Dirichlet("w", np.ones(2))
    means = pm.Normal("means", [-1.0, 1.0], 1.0, shape=2)
    pm.NormalMixture("y", w, means, sigma=0.7, observed=y)


def censored():
    rate = pm.LogNormal("rate", 0.0, 0.5)
    late = np.clip(y + 2, 0, 2)
    pm.Censored("y", pm.Exponential.dist(rate), lower=None, upper=2.0, observed=late)
    pm.Truncated("t", pm.Normal.dist(rate, 1.0), lower=0.0, observed=abs(y))


def series():
    rho = pm.Uniform("rho", -0.9, 0.9)
    pm.AR("y", [0.1, rho], sigma=0.5, constant=True, observed=y)
    pm.GaussianRandomWalk("walk", 0.1, 0.5, init_dist=pm.Normal.dist(0, 1), observed=y)


def process():
    scale = pm.Gamma("scale", 2.0, 2.0)
    covariance = pm.gp.cov.Matern52(1, ls=scale) + pm.gp.cov.WhiteNoise(0.1)
    pm.gp.Marginal(cov_func=covariance).marginal_likelihood("y", X=x[:, None], y=y, sigma=0.1)


def correlated():
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
    pm.MvNormal("y", np.zeros(2), chol=chol, observed=np.stack([x, y], 1))
    ordered = pm.distributions.transforms.ordered
    cuts = pm.Normal("c", [-1.0, 1.0], 1.0, shape=2, transform=ordered)
    pm.OrderedProbit("o", eta=x, cutpoints=cuts, observed=[0, 1, 2] * 4)
    pm.Potential("near", -(chol[0] ** 2))


for build in (linear, mixture, censored, series, process, correlated):
    with pm.Model() as model:
        build()
        point = model.initial_point(random_seed=1)
        inputs = [point[v.name] + 0.1 for v in model.value_vars]
        value, grads = jax.value_and_grad(get_jaxified_logp(model))(inputs)
    results[f"model {build.__name__}"] = [float(value), *[grad.tolist() for grad in grads]]

with pm.Model():
    linear()
    options = {"draws": 10, "tune": 10, "chains": 2, "random_seed": 1, "progressbar": False}
    options.update(compute_convergence_checks=False, chain_method="vectorized")
    trace = sample_numpyro_nuts(**options)
    results["NUTS"] = [trace["posterior"][v].values.shape for v in ("a", "b", "s")]
print(json.dumps(results))
