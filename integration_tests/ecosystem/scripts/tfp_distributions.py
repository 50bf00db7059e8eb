"""TensorFlow Probability: distributions, bijectors, samplers, optimizers, variational inference."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates import jax as tfp

tfd, tfb, tfm, tfpk = tfp.distributions, tfp.bijectors, tfp.math, tfp.math.psd_kernels
key = jax.random.PRNGKey(0)

FAMILIES = {
    "Normal": (tfd.Normal, (0.5, 2.0)),
    "Beta": (tfd.Beta, (2.0, 3.0)),
    "Gamma": (tfd.Gamma, (2.0, 1.5)),
    "StudentT": (tfd.StudentT, (4.0, 0.5, 2.0)),
    "VonMises": (tfd.VonMises, (0.3, 2.0)),
    "Weibull": (tfd.Weibull, (1.5, 2.0)),
    "Gumbel": (tfd.Gumbel, (0.5, 2.0)),
    "LogNormal": (tfd.LogNormal, (0.5, 0.7)),
    "Laplace": (tfd.Laplace, (0.5, 2.0)),
    "Kumaraswamy": (tfd.Kumaraswamy, (2.0, 3.0)),
    "TruncatedNormal": (tfd.TruncatedNormal, (0.0, 1.0, -0.5, 1.5)),
    "Poisson": (tfd.Poisson, (3.0,)),
    "NegativeBinomial": (tfd.NegativeBinomial, (4.0, 0.3)),
    "Skellam": (tfd.Skellam, (2.0, 3.0)),
    "Dirichlet": (tfd.Dirichlet, (jnp.array([1.0, 2.0, 3.0]),)),
    "Wishart": (tfd.WishartTriL, (5.0, jnp.eye(3))),
    "MultivariateNormal": (tfd.MultivariateNormalTriL, (jnp.zeros(3), jnp.eye(3) + 0.5)),
    "OneHot": (tfd.OneHotCategorical, (jnp.array([0.1, 0.5, -0.3]),)),
}
"""Classes of distributions with the arguments of their constructors."""

MOMENTS = {"Normal", "Beta", "Gamma", "Weibull", "Gumbel", "LogNormal", "Dirichlet", "Poisson"}


def describe(family, parameters) -> list:
    """Samples, log-densities and the derivatives of these by the parameters."""
    draws = family(*parameters).sample(3, seed=key)

    def total(*parameters):
        return jnp.sum(family(*parameters).log_prob(draws))

    value, slopes = jax.jit(jax.value_and_grad(total, argnums=tuple(range(len(parameters)))))(
        *parameters
    )
    return [jnp.ravel(draws)[:4], value, [jnp.ravel(s)[:4] for s in slopes]]


def bijections() -> dict:
    """Values, inverses and log-determinants of bijectors."""
    x = jnp.linspace(-1.2, 1.7, 4)
    chain = tfb.Chain([tfb.Exp(), tfb.Shift(0.5), tfb.Scale(2.0)])
    spline = tfb.RationalQuadraticSpline(
        jnp.array([1.0, 1.5, 1.5]), jnp.array([1.5, 1.0, 1.5]), jnp.array([0.7, 1.2]), -2.0
    )
    flow = tfb.MaskedAutoregressiveFlow(
        lambda y: jnp.stack(
            [0.3 * jnp.cumsum(y, -1) - 0.3 * y, 0.1 * jnp.cumsum(y, -1) - 0.1 * y], -1
        )
    )
    each = {
        "chain": chain,
        "softplus": tfb.Softplus(),
        "sigmoid": tfb.Sigmoid(-1.0, 2.0),
        "sinh": tfb.SinhArcsinh(0.3, 1.2),
        "spline": spline,
        "flow": flow,
        "corr": tfb.CorrelationCholesky(),
        "tril": tfb.FillScaleTriL(),
        "ascending": tfb.Ascending(),
    }
    numbers = {}
    for name, bijector in each.items():
        argument = jnp.linspace(-1.0, 1.0, 6) if name in ("corr", "tril") else x
        if name == "ascending":
            argument = jnp.sort(x)
        value = bijector.forward(argument)
        ndims = bijector.forward_min_event_ndims
        numbers[name] = [
            jnp.ravel(value),
            jnp.ravel(bijector.inverse(value + 0.0)),
            bijector.forward_log_det_jacobian(argument, ndims),
        ]
    return numbers


def sampling() -> dict:
    """Chains of Markov chain Monte Carlo: HMC with an adapted step, NUTS, slices, replicas."""
    target = tfd.MultivariateNormalTriL(jnp.array([1.0, -1.0]), jnp.array([[1.0, 0.0], [0.6, 0.8]]))
    hmc = tfp.mcmc.SimpleStepSizeAdaptation(
        tfp.mcmc.HamiltonianMonteCarlo(target.log_prob, step_size=0.3, num_leapfrog_steps=3), 10
    )
    kernels = {
        "hmc": hmc,
        "nuts": tfp.mcmc.NoUTurnSampler(target.log_prob, step_size=0.4, max_tree_depth=3),
        "slice": tfp.mcmc.SliceSampler(target.log_prob, step_size=0.5, max_doublings=3),
        "walk": tfp.mcmc.RandomWalkMetropolis(target.log_prob),
    }

    def chain(kernel, seed):
        return tfp.mcmc.sample_chain(
            num_results=8,
            num_burnin_steps=4,
            current_state=jnp.zeros(2),
            kernel=kernel,
            trace_fn=None,
            seed=seed,
        )

    draws = {name: jax.jit(lambda s, k=k: chain(k, s))(key) for name, k in kernels.items()}
    chains = jnp.stack([draws["hmc"], draws["walk"]], axis=1)
    return {
        "draws": {name: values[-1] for name, values in draws.items()},
        "rhat": tfp.mcmc.potential_scale_reduction(chains),
        "size": tfp.mcmc.effective_sample_size(chains),
    }


def joint() -> dict:
    """A joint distribution: samples, density, a surrogate posterior that is fitted to it."""

    @tfd.JointDistributionCoroutineAutoBatched
    def model():
        location = yield tfd.Normal(0.0, 2.0, name="location")
        scale = yield tfd.HalfNormal(1.0, name="scale")
        yield tfd.Sample(tfd.Normal(location, scale), 6, name="data")

    data = jnp.array([0.5, 1.2, 0.8, 1.9, 0.1, 1.0])
    pinned = model.experimental_pin(data=data)
    bijector = pinned.experimental_default_event_space_bijector()

    def build(loc, log_scale):
        base = tfd.MultivariateNormalDiag(loc, jnp.exp(log_scale))
        return base

    def energy(parameters, seed):
        surrogate = build(*parameters)
        draws = surrogate.sample(8, seed=seed)

        def of_one(z):
            values = bijector.forward([z[0], z[1]])
            return pinned.unnormalized_log_prob(*values) + bijector.forward_log_det_jacobian(
                [z[0], z[1]], [0, 0]
            )

        return jnp.mean(surrogate.log_prob(draws) - jax.vmap(of_one)(draws))

    parameters = (jnp.zeros(2), jnp.zeros(2))
    slopes = jax.jit(jax.grad(energy))
    for _ in range(5):
        parameters = jax.tree.map(lambda p, g: p - 0.05 * g, parameters, slopes(parameters, key))
    sample = model.sample(seed=key)
    return {
        "sample": [sample.location, sample.scale, sample.data[:2]],
        "density": model.log_prob(sample),
        "fitted": parameters,
    }


def minimized() -> dict:
    """Minima by L-BFGS, BFGS, Nelder-Mead, and roots."""

    def rosenbrock(x):
        return jnp.sum(100.0 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1.0 - x[..., :-1]) ** 2, -1)

    start = jnp.array([-1.0, 1.2])
    with_slope = jax.value_and_grad(rosenbrock)
    lbfgs = tfp.optimizer.lbfgs_minimize(with_slope, start, tolerance=1e-5, max_iterations=60)
    bfgs = tfp.optimizer.bfgs_minimize(with_slope, start, tolerance=1e-5, max_iterations=60)
    simplex = tfp.optimizer.nelder_mead_minimize(rosenbrock, initial_vertex=start)
    root = tfm.find_root_chandrupatla(lambda x: jnp.cos(x) - x, 0.0, 1.0)
    return {
        "lbfgs": [lbfgs.converged, lbfgs.position],
        "bfgs": [bfgs.converged, bfgs.position],
        "simplex": [simplex.converged, jnp.round(simplex.position, 2)],
        "root": root.estimated_root,
    }


def mathematics() -> dict:
    """Special functions, statistics, kernels, Gaussian processes, differential equations."""
    x = jnp.linspace(0.4, 3.1, 4)
    kernel = tfpk.MaternFiveHalves(1.2, 0.7) + tfpk.ExponentiatedQuadratic(0.5, 1.5)
    points = jnp.linspace(-1.0, 1.0, 6)[:, None]
    process = tfd.GaussianProcess(kernel, points, observation_noise_variance=0.05)
    observed = jnp.sin(3.0 * points[:, 0])
    regression = tfd.GaussianProcessRegressionModel(
        kernel, jnp.array([[0.1], [0.6]]), points, observed, observation_noise_variance=0.05
    )
    hidden = tfd.HiddenMarkovModel(
        tfd.Categorical(probs=jnp.array([0.6, 0.4])),
        tfd.Categorical(probs=jnp.array([[0.8, 0.2], [0.3, 0.7]])),
        tfd.Normal(jnp.array([-1.0, 1.0]), 0.5),
        num_steps=5,
    )
    series = jnp.array([-0.8, -1.1, 0.9, 1.2, 0.7])
    state_space = tfp.sts.LocalLinearTrend(observed_time_series=series)
    trend = state_space.make_state_space_model(
        5, {"level_scale": jnp.float32(0.3), "slope_scale": jnp.float32(0.2)}
    )
    return {
        "bessel": [tfm.bessel_ive(1.3, x), tfm.log_bessel_kve(0.7, x), tfm.bessel_iv_ratio(2.0, x)],
        "beta": [
            tfm.lbeta(x, 2.0),
            tfm.betaincinv(2.0, 3.0, x / 4.0),
            tfm.log_gamma_correction(x + 8),
        ],
        "error": [tfm.erfcx(x), tfm.erfcinv(x / 4.0), tfm.owens_t(x, 0.5), tfm.lambertw(x)],
        "igamma": [tfm.igammainv(2.0, x / 4.0), jax.grad(lambda a: tfm.igammainv(a, 0.3))(2.0)],
        "quantiles": [tfp.stats.percentile(x, 40.0), tfp.stats.auto_correlation(series)],
        "scan": tfm.scan_associative(jnp.add, x),
        "interpolated": tfm.batch_interp_regular_1d_grid(x, 0.0, 4.0, jnp.arange(5.0) ** 2),
        "process": [process.log_prob(observed), regression.mean(), regression.variance()],
        "hidden": [hidden.log_prob(series), hidden.posterior_mode(series)],
        "trend": [trend.log_prob(series[:, None]), *trend.posterior_marginals(series[:, None])],
        "halton": tfp.mcmc.sample_halton_sequence(2, 3, randomized=False),
        "clip": tfm.clip_by_value_preserve_gradient(x, 1.0, 2.0),
    }


def variables() -> list:
    """Variables of TensorFlow Probability as parameters and as operands of functions of jax."""
    scale = tfp.util.TransformedVariable(2.0, tfb.Softplus())
    location = tfp.tf2jax.Variable(jnp.float32(0.5))
    before = tfd.Normal(location, scale).log_prob(0.3)
    location.assign(1.5)
    return [
        before,
        tfd.Normal(location, scale).log_prob(0.3),
        jnp.sin(location),
        jax.jit(jnp.cos)(location),
    ]


def plain(value):
    """Numbers and lists of an answer."""
    if isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        parts = [(k, plain(v)) for k, v in items]
        return dict(parts) if isinstance(value, dict) else [v for _, v in parts]
    return np.asarray(value).astype(np.float64).tolist() if not isinstance(value, bool) else value


answer = {
    "families": {name: describe(*family) for name, family in FAMILIES.items()},
    "moments": {
        name: [
            FAMILIES[name][0](*FAMILIES[name][1]).mean(),
            FAMILIES[name][0](*FAMILIES[name][1]).variance(),
        ]
        for name in sorted(MOMENTS)
    },
    "divergence": tfd.kl_divergence(tfd.Gamma(2.0, 1.5), tfd.Gamma(3.0, 1.0)),
    "mixture": tfd.MixtureSameFamily(
        tfd.Categorical(probs=jnp.array([0.3, 0.7])), tfd.Normal(jnp.array([-1.0, 1.0]), 0.5)
    ).log_prob(jnp.array([0.1, 2.0])),
    "bijectors": bijections(),
    "sampling": sampling(),
    "joint": joint(),
    "minimized": minimized(),
    "mathematics": mathematics(),
    "variables": variables(),
}
print(json.dumps(plain(answer)))
