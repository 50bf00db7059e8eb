"""OTT: costs, regularizers, geometries, problems, solvers and initializers, differentiated."""

import json
import warnings

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from ott.geometry import (
    costs,
    distrib_costs,
    epsilon_scheduler,
    geodesic,
    geometry,
    graph,
    grid,
    low_rank,
    pointcloud,
    regularizers,
    segment,
    semidiscrete_pointcloud,
)
from ott.initializers.linear import initializers, initializers_lr
from ott.initializers.quadratic import initializers as quadratic_initializers
from ott.problems.linear import barycenter_problem, linear_problem, semidiscrete_linear_problem
from ott.problems.quadratic import gw_barycenter as gw_barycenter_problem, quadratic_problem
from ott.solvers import linear, quadratic, utils as solver_utils
from ott.solvers.linear import (
    acceleration,
    continuous_barycenter,
    discrete_barycenter,
    implicit_differentiation,
    semidiscrete,
    sinkhorn,
    sinkhorn_lr,
    univariate,
)
from ott.solvers.quadratic import gromov_wasserstein, gw_barycenter, lower_bound

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

# Costs with gradients, and barycenters
spread = jnp.concatenate([x[0], jnp.array([1.0, 0.2, 0.2, 0.8])])
other = jnp.concatenate([y[0], jnp.array([0.7, -0.1, -0.1, 1.2])])
l1 = regularizers.L1()
functions = {
    "squared p-norm": (costs.SqPNorm(1.5), x[0], y[0]),
    "p-norm": (costs.PNormP(1.5), x[0], y[0]),
    "power": (costs.EuclideanP(1.3), x[0], y[0]),
    "product": (costs.NegDotProduct(), x[0], y[0]),
    "regularized": (costs.RegTICost(l1, lam=0.4), x[0], y[0]),
    "Euclidean": (costs.Euclidean(), x[0], y[0]),
    "squared": (costs.SqEuclidean(), x[0], y[0]),
    "cosine": (costs.Cosine(), x[0], y[0]),
    "arccos": (costs.Arccos(1), x[0], y[0]),
    "Bures": (costs.Bures(2), spread, other),
    "unbalanced Bures": (costs.UnbalancedBures(2), jnp.append(1.0, spread), jnp.append(0.8, other)),
    "soft DTW": (costs.SoftDTW(0.3), x[:, 0], y[:, 0]),
    "debiased DTW": (costs.SoftDTW(0.3, debiased=True), x[:, 0], y[:, 0]),
}
for name, (cost, u, v) in functions.items():
    record(f"cost, {name}", jax.jit(jax.value_and_grad(cost, argnums=(0, 1)))(u, v))
    if isinstance(cost, costs.TICost) and "power" not in name:
        record(f"cost, {name}: Legendre", jax.value_and_grad(cost.h_legendre)(u))
for name in ("squared", "regularized"):
    transform = functions[name][0].h_transform(lambda z: jnp.sum(jnp.abs(z - 0.3) ** 2))
    record(f"cost, {name}: h-transform", transform(x[0]))
record("barycenter, squared", costs.SqEuclidean().barycenter(a, x))
record(
    "barycenter, Bures",
    costs.Bures(2).barycenter(jnp.array([0.3, 0.7]), jnp.stack([spread, other])),
)
record("cost of distributions", distrib_costs.UnivariateWasserstein(
    univariate.quantile_solver)(x[:, 0], y[:, 1]))  # fmt: skip

# Regularizers
matrix = jnp.array([[1.0, 0.5, -0.2], [0.0, 1.0, 0.3]])
z = jnp.array([0.9, -1.4, 0.3])
for name, operator in {
    "L1": l1,
    "squared L2": regularizers.SqL2(matrix),
    "STVS": regularizers.STVS(0.7),
    "overlap": regularizers.SqKOverlap(2),
    "quadratic": regularizers.Quadratic(matrix.T @ matrix, b=0.1 * z),
    "orthogonal": regularizers.Orthogonal(l1, jnp.eye(3)[:2]),
    "composed": regularizers.PostComposition(l1, alpha=0.6, b=0.2),
    "regularized": regularizers.Regularization(l1, a=0.2 * z, rho=0.4),
}.items():
    record(f"regularizer, {name}", operator(z), operator.prox(z, 0.7), operator.prox_dual(z, 0.7),
           operator.moreau_envelope(z, 0.7))  # fmt: skip

# Geometries
cloud = pointcloud.PointCloud(x, y, epsilon=0.4)
adjacency = jnp.abs(jr.normal(next(keys), (6, 6)))
adjacency = adjacency + adjacency.T - 2 * jnp.diag(jnp.diag(adjacency))
geometries = {
    "points": cloud,
    "points, scaled": pointcloud.PointCloud(x, y, scale_cost="max_cost", epsilon=0.2),
    "points, cosine": pointcloud.PointCloud(x, y, cost_fn=costs.Cosine(), relative_epsilon="mean"),
    "matrix": geometry.Geometry(cloud.cost_matrix, epsilon=0.4, scale_cost="mean"),
    "kernel": geometry.Geometry(kernel_matrix=jnp.exp(-cloud.cost_matrix), epsilon=1.0),
    "grid": grid.Grid(grid_size=(3, 2), epsilon=0.3),
    "low rank": low_rank.LRCGeometry(x, y, bias=0.1, epsilon=0.4),
    "low rank of points": cloud.to_LRCGeometry(),
    "kernel of low rank": low_rank.LRKGeometry.from_pointcloud(
        x, y, kernel="gaussian", rank=40, std=1.0, rng=jr.key(4)
    ),
    "graph": graph.Graph.from_graph(adjacency, t=0.2, n_steps=5),
    "geodesic": geodesic.Geodesic.from_graph(adjacency, t=0.2, order=20, rng=jr.key(2)),
}
for name, geom in geometries.items():
    rows, columns = geom.shape
    u, v = jnp.cos(jnp.arange(1.0 * rows)), jnp.sin(jnp.arange(1.0 * columns))
    if name != "grid":
        record(f"geometry, {name}", geom.cost_matrix, geom.epsilon)
    if name not in ("graph", "geodesic"):
        record(f"geometry, {name}: costs", geom.apply_cost(u), geom.apply_square_cost(v, axis=1))
    if "low rank" not in name or "kernel" in name:
        record(f"geometry, {name}: kernel", geom.apply_kernel(u + 2, axis=0))
    if name not in ("grid", "graph", "geodesic", "kernel of low rank"):
        record(f"geometry, {name}: log kernel", geom.apply_lse_kernel(u, v, 0.4, axis=0)[0],
               geom.transport_from_potentials(0.1 * u, 0.1 * v))  # fmt: skip
record("geometry, subset", cloud.subset(jnp.array([0, 2]), jnp.array([1])).cost_matrix)
record("geometry, low rank approximation", geometries["matrix"].to_LRCGeometry(rank=3).cost_matrix)
record("epsilon", [epsilon_scheduler.Epsilon(0.1, 5.0, 0.8)(i) for i in (0, 3, 40)])
record("segments", segment.segment_point_cloud(x, num_per_segment=(3, 4), max_measure_size=5))

# Sinkhorn
problem = linear_problem.LinearProblem(cloud, a, b)
solvers = {
    "default": sinkhorn.Sinkhorn(),
    "kernel": sinkhorn.Sinkhorn(lse_mode=False),
    "parallel": sinkhorn.Sinkhorn(parallel_dual_updates=True),
    "momentum": sinkhorn.Sinkhorn(momentum=acceleration.Momentum(start=10, value=1.2)),
    "Anderson": sinkhorn.Sinkhorn(anderson=acceleration.AndersonAcceleration(3, 2)),
    "recentered": sinkhorn.Sinkhorn(recenter_potentials=True, norm_error=2),
    "Gaussian start": sinkhorn.Sinkhorn(initializer=initializers.GaussianInitializer()),
    "subsampled start": sinkhorn.Sinkhorn(initializer=initializers.SubsampleInitializer(4, 4)),
}
for name, solver in solvers.items():
    out = jax.jit(solver)(problem)
    record(f"sinkhorn, {name}", out.reg_ot_cost, out.f, out.g, out.n_iters, out.errors)
record(
    "sinkhorn, output",
    out.matrix,
    out.apply(b, axis=1),
    out.marginal(0),
    out.primal_cost,
    out.dual_cost,
    out.ent_reg_cost,
    out.kl_reg_cost,
    out.entropy,
    out.transport_mass,
)
potentials = out.to_dual_potentials()
record("dual potentials", potentials.transport(x), potentials.transport(y, forward=False),
       potentials.distance(x, y))  # fmt: skip
unbalanced = linear_problem.LinearProblem(cloud, a, b, tau_a=0.9, tau_b=0.8)
record("sinkhorn, unbalanced", sinkhorn.Sinkhorn()(unbalanced).reg_ot_cost)
diagonal = linear_problem.LinearProblem(pointcloud.PointCloud(x[:, :1], y[:6, :1], epsilon=0.3))
for vectorized in (True, False):
    square = linear_problem.LinearProblem(pointcloud.PointCloud(x[:6, :1], epsilon=0.3))
    start = initializers.SortingInitializer(vectorized_update=vectorized)
    record(
        f"sinkhorn, sorted {vectorized}", sinkhorn.Sinkhorn(initializer=start)(square).reg_ot_cost
    )
implicit = implicit_differentiation.ImplicitDiff()
for name, solver in {
    "Danskin": sinkhorn.Sinkhorn(threshold=1e-6),
    "implicit": sinkhorn.Sinkhorn(threshold=1e-6, implicit_diff=implicit, use_danskin=False),
    "symmetric": sinkhorn.Sinkhorn(
        threshold=1e-6,
        use_danskin=False,
        implicit_diff=implicit_differentiation.ImplicitDiff(symmetric=True),
    ),
    "unrolled": sinkhorn.Sinkhorn(implicit_diff=None, min_iterations=40, max_iterations=40),
}.items():

    def cost(x, a, solver=solver):
        geom = pointcloud.PointCloud(x, y, epsilon=0.4)
        out = solver(linear_problem.LinearProblem(geom, a, b))
        return out.reg_ot_cost + jnp.sum(out.f**2)

    record(f"sinkhorn, gradient: {name}", jax.jit(jax.grad(cost, argnums=(0, 1)))(x, a))
record("sinkhorn, mapped", jax.vmap(
    lambda e: sinkhorn.Sinkhorn()(linear_problem.LinearProblem(
        pointcloud.PointCloud(x, y, epsilon=e))).reg_ot_cost)(jnp.array([0.3, 0.6])))  # fmt: skip
starts = {
    "random": initializers_lr.RandomInitializer(2),
    "rank 2": initializers_lr.Rank2Initializer(2),
    "k-means": initializers_lr.KMeansInitializer(2),
}
for name, start in starts.items():
    solver = sinkhorn_lr.LRSinkhorn(rank=2, initializer=start, max_iterations=60)
    record(f"low rank, {name}", jax.jit(solver)(problem).primal_cost)
record("solve", linear.solve(cloud, a, b).reg_ot_cost)
line = pointcloud.PointCloud(x[:, :1], y[:, :1])
for name in ("quantile_solver", "north_west_solver"):
    out = getattr(univariate, name)(linear_problem.LinearProblem(line, a, b))
    record(name, out.ot_costs)
record("uniform_solver", univariate.uniform_solver(linear_problem.LinearProblem(
    pointcloud.PointCloud(x[:6, :1], y[:, :1])), return_transport=True).ot_costs)  # fmt: skip
target = semidiscrete_pointcloud.SemidiscretePointCloud(jr.normal, y, epsilon=0.5)
half = semidiscrete_linear_problem.SemidiscreteLinearProblem(target, b)
solver = semidiscrete.SemidiscreteSolver(
    num_iterations=12, batch_size=8, optimizer=optax.sgd(0.2), error_eval_every=6,
    error_batch_size=8, error_num_repeats=2,
)  # fmt: skip
record("semidiscrete", jax.jit(solver)(jr.key(6), half).g)

# Barycenters
free = barycenter_problem.FreeBarycenterProblem(
    jnp.concatenate([x, y]), jnp.concatenate([a, b]), num_per_segment=(7, 6), epsilon=0.5
)
out = continuous_barycenter.FreeWassersteinBarycenter(sinkhorn.Sinkhorn(), max_iterations=5)(
    free, bar_size=3, rng=jr.key(2)
)
record("free barycenter", out.x, out.costs)
fixed = barycenter_problem.FixedBarycenterProblem(
    pointcloud.PointCloud(x, epsilon=0.5), jnp.stack([a, a[::-1]]), jnp.array([0.3, 0.7])
)
record("fixed barycenter", discrete_barycenter.FixedBarycenter(debiased=True)(fixed).histogram)

# Quadratic problems
xx, yy = pointcloud.PointCloud(x), pointcloud.PointCloud(y)
quad = quadratic_problem.QuadraticProblem(xx, yy, a=a, b=b)
dense = quadratic_problem.QuadraticProblem(
    geometry.Geometry(xx.cost_matrix), geometry.Geometry(yy.cost_matrix), cloud, 0.7, a=a, b=b
)
settings = {"epsilon": 1.0, "max_iterations": 6}
out = jax.jit(gromov_wasserstein.GromovWasserstein(sinkhorn.Sinkhorn(), **settings))(quad)
record("Gromov", out.reg_gw_cost, out.primal_cost, out.matrix, out.costs)
start = quadratic_initializers.QuadraticInitializer()
solver = gromov_wasserstein.GromovWasserstein(
    sinkhorn.Sinkhorn(), warm_start=True, initializer=start, **settings
)
record("Gromov, fused", jax.jit(solver)(dense).reg_gw_cost)
loose = quadratic_problem.QuadraticProblem(xx, yy, a=a, b=b, tau_a=0.9, tau_b=0.9)
record("Gromov, unbalanced", jax.jit(solver)(loose).reg_gw_cost)
divergence = quadratic_problem.QuadraticProblem(
    geometry.Geometry(xx.cost_matrix), geometry.Geometry(yy.cost_matrix), loss="kl"
)
record("Gromov, Kullback", jax.jit(solver)(divergence).reg_gw_cost)
record("Gromov, gradient", jax.jit(jax.grad(lambda x: gromov_wasserstein.GromovWasserstein(
    sinkhorn.Sinkhorn(), epsilon=1.0, max_iterations=3)(quadratic_problem.QuadraticProblem(
        pointcloud.PointCloud(x), yy)).reg_gw_cost))(x))  # fmt: skip
record("Gromov, low rank", quadratic.solve(xx, yy, rank=2, max_iterations=20, min_iterations=0,
                                           inner_iterations=10).reg_gw_cost)  # fmt: skip
record(
    "lower bound",
    lower_bound.third_lower_bound(
        quad, distrib_costs.UnivariateWasserstein(univariate.quantile_solver), epsilon=1.0
    ).reg_ot_cost,
)
metric = gw_barycenter_problem.GWBarycenterProblem(
    jnp.concatenate([x, y]), jnp.concatenate([a, b]), num_per_segment=(7, 6)
)
out = gw_barycenter.GromovWassersteinBarycenter(
    gromov_wasserstein.GromovWasserstein(sinkhorn.Sinkhorn(), epsilon=1.0, max_iterations=2),
    min_iterations=1, max_iterations=2,
)(metric, bar_size=3)  # fmt: skip
record("Gromov barycenter", out.cost, out.costs)
record("match", solver_utils.match_linear(x, y), solver_utils.match_quadratic(x, y))
record("sample", solver_utils.sample_joint(jr.key(1), jnp.outer(a, b)),
       solver_utils.sample_conditional(jr.key(1), jnp.outer(a, b), k=2),
       solver_utils.uniform_sampler(jr.key(1), 5))  # fmt: skip
print(json.dumps(results))
