"""OTT's tools (divergences, sorting, k-means, mixtures of Gaussians) and its mathematics."""

import json
import warnings

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from ott.experimental import mmsinkhorn
from ott.geometry import pointcloud
from ott.math import fixed_point_loop, legendre, matrix_square_root, unbalanced_functions, utils
from ott.problems.linear import linear_problem
from ott.tools import (
    k_means,
    progot,
    segment_sinkhorn,
    sinkhorn_divergence,
    sliced,
    soft_sort,
    unreg,
)
from ott.tools.gaussian_mixture import fit_gmm, gaussian, gaussian_mixture, gaussian_mixture_pair

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")
results = {}
keys = iter(jr.split(jr.key(0), 60))


def record(name, *values):
    """The values of small leaves, and sums of the others."""
    leaves = [np.nan_to_num(np.asarray(x, float)) for x in jax.tree.leaves(values)]
    results[name] = [v.ravel().tolist() if v.size < 13 else [v.sum(), abs(v).sum()] for v in leaves]


x, y = jr.normal(next(keys), (7, 2)), jr.normal(next(keys), (6, 2)) + 0.5
a, b = jax.nn.softmax(jnp.arange(7.0) / 5), jax.nn.softmax(jnp.cos(jnp.arange(6.0)))
xx = pointcloud.PointCloud(x)

# Tools
record("divergence", sinkhorn_divergence.sinkdiv(x, y)[0])
record("divergence, gradient", jax.grad(lambda x: sinkhorn_divergence.sinkhorn_divergence(
    pointcloud.PointCloud, x, y, epsilon=0.5, a=a, b=b)[0])(x))  # fmt: skip
pieces = {"num_per_segment_x": (3, 4), "num_per_segment_y": (2, 4)}
record("segments, sinkhorn", segment_sinkhorn.segment_sinkhorn(x, y, **pieces))
record("segments, divergence", sinkhorn_divergence.segment_sinkhorn_divergence(x, y, **pieces))
record("sliced", sliced.sliced_wasserstein(x, y, n_proj=8, rng=jr.key(3))[0])
record("assignment", unreg.hungarian(pointcloud.PointCloud(x[:6], y))[0], unreg.wassdis_p(x[:6], y))
record("k-means", k_means.k_means(xx, 3, rng=jr.key(1)))
for init in ("random", "k-means++"):
    record(f"k-means, {init}", k_means.k_means(x, 2, weights=a, init=init, n_init=2))
alphas = progot.get_alpha_schedule("lin", num_steps=3)
out = progot.ProgOT(alphas)(linear_problem.LinearProblem(pointcloud.PointCloud(x, y)))
record("progressive", out.transport(x), out.epsilons, alphas)
marginals = mmsinkhorn.MMSinkhorn()((x[:4], y[:3], x[3:6]), epsilon=0.5)
record("multimarginal", marginals.ent_reg_cost, marginals.tensor, marginals.potentials)
v, weights = (
    jnp.array([[3.0, 1.0, 2.5, -1.0], [0.2, 0.9, -0.5, 0.1]]),
    jnp.array([0.1, 0.2, 0.3, 0.4]),
)
for name, function in {
    "sort": soft_sort.sort,
    "three largest": lambda v: soft_sort.sort(v, topk=3),
    "ranks": soft_sort.ranks,
    "mask": lambda v: soft_sort.topk_mask(v, k=2),
    "quantile": lambda v: soft_sort.quantile(v, q=0.3, weight=0.1),
    "normalization": lambda v: soft_sort.quantile_normalization(v, jnp.arange(4.0)),
    "quantize": lambda v: soft_sort.quantize(v, num_levels=3),
}.items():
    record(f"soft {name}", function(v))
    if name not in ("sort", "mask"):
        record(f"soft {name}: gradient", jax.grad(lambda v, f=function: jnp.sum(f(v) ** 2))(v))
record("soft sort_with", soft_sort.sort_with(x, x[:, 0]))
maps = soft_sort.multivariate_cdf_quantile_maps(x, rng=jr.key(2), epsilon=0.3)
record("soft maps", maps.transport(x[:2]), maps.transport(jnp.full((2, 2), 0.4), forward=False))

# Gaussians and their mixtures
one = gaussian.Gaussian.from_samples(x, a)
two = gaussian.Gaussian.from_random(jr.key(3), 2)
record(
    "gaussian",
    one.log_prob(y),
    one.sample(jr.key(0), 3),
    one.w2_dist(two),
    one.transport(two, x),
    one.f_potential(two, x),
    one.to_z(x),
    one.covariance(),
)
mixture = gaussian_mixture.GaussianMixture.from_random(jr.key(5), 2, 2)
record(
    "mixture",
    mixture.log_prob(x),
    mixture.sample(jr.key(0), 3),
    mixture.get_log_component_posterior(x),
    jax.grad(lambda m: m.log_prob(x).sum())(mixture),
)
start = fit_gmm.from_kmeans_plusplus(jr.key(2), x, a, 2)
record("mixture, fitted", fit_gmm.fit_model_em(start, x, a, 5), fit_gmm.log_prob_loss(start, x, a))
pair = gaussian_mixture_pair.GaussianMixturePair(mixture, start, epsilon=0.5)
coupling = pair.get_normalized_sinkhorn_coupling(pair.get_sinkhorn(pair.get_cost_matrix()))
record("mixture, pair", pair.get_cost_matrix(), coupling)

# Mathematics
positive = jnp.array([[2.0, 0.2], [0.2, 1.8]])
record("square roots", matrix_square_root.sqrtm(positive)[:2], jax.jit(jax.grad(
    lambda m: matrix_square_root.sqrtm_only(m).sum() + matrix_square_root.inv_sqrtm_only(m)[0, 1]
))(positive))  # fmt: skip
record("Sylvester", matrix_square_root.solve_sylvester_bartels_stewart(positive, positive.T, x[:2]))
record("Legendre", legendre(lambda z: jnp.sum(z**2) + z[0])(x[0]))
record(
    "entropies",
    utils.kl(a[:6], b),
    utils.gen_ent(a),
    utils.gen_kl(a[:6], b),
    utils.gen_js(a[:6], b),
)
record("softmin", jax.value_and_grad(lambda u: utils.softmin(u, 0.3))(a), utils.safe_log(b))
record("logsumexp", jax.value_and_grad(
    lambda u: utils.logsumexp(u, b=jnp.ones(2) * 0.5, axis=1).sum())(x))  # fmt: skip
record("norm", jax.grad(lambda u: utils.norm(u, ord=1.5))(jnp.zeros(2)), utils.norm(x, axis=1))
record("Lambert", jax.vmap(jax.value_and_grad(utils.lambertw))(jnp.array([0.3, 1.0, 4.0])))
record("unbalanced", unbalanced_functions.phi_star(a, 0.7), unbalanced_functions.rho(0.1, 0.8),
       unbalanced_functions.diag_jacobian_of_marginal_fit(a, a, 0.8, 0.1, jnp.cos))  # fmt: skip
for function in (fixed_point_loop.fixpoint_iter, fixed_point_loop.fixpoint_iter_backprop):

    def settle(c, function=function):
        return function(
            lambda i, c, s: jnp.abs(s - jnp.cos(c * s)) > 1e-6,
            lambda i, c, s, e: jnp.cos(c * s), 5, 40, 5, c, jnp.array(0.4),
        )  # fmt: skip

    record(f"{function.__name__}", settle(0.8))
record("fixed point, gradient", jax.grad(settle)(0.8))
print(json.dumps(results))
