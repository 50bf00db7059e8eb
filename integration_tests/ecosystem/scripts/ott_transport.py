"""OTT: Sinkhorn's algorithm on point clouds, its gradient, Gromov-Wasserstein, soft sorting."""

import json

import jax
import jax.numpy as jnp
from ott.geometry import geometry, pointcloud
from ott.problems.linear import linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers.linear import sinkhorn, sinkhorn_lr
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import sinkhorn_divergence, soft_sort

x = jax.random.normal(jax.random.key(0), (12, 2))
y = jax.random.normal(jax.random.key(1), (10, 2)) + 1.0


def cost(x):
    geom = pointcloud.PointCloud(x, y, epsilon=0.5)
    return sinkhorn.Sinkhorn(threshold=1e-4)(linear_problem.LinearProblem(geom)).reg_ot_cost


value, grad = jax.jit(jax.value_and_grad(cost))(x)
plan = sinkhorn.Sinkhorn()(linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.5)))
divergence = sinkhorn_divergence.sinkhorn_divergence(pointcloud.PointCloud, x, y, epsilon=0.5)
distances = [geometry.Geometry(jnp.sum((a[:, None] - a) ** 2, -1)) for a in (x, y)]
quadratic = gromov_wasserstein.GromovWasserstein(
    linear_solver=sinkhorn.Sinkhorn(), epsilon=2.0, max_iterations=5
)(quadratic_problem.QuadraticProblem(*distances))
low = sinkhorn_lr.LRSinkhorn(rank=3)(
    linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.5))
)
values = jnp.array([3.0, 1.0, 2.5, -1.0])
print(
    json.dumps(
        {
            "cost": float(value),
            "grad": grad[:3].tolist(),
            "marginals": plan.matrix.sum(1).tolist(),
            "divergence": float(divergence[0]),
            "gromov": float(quadratic.reg_gw_cost),
            "low rank": bool(jnp.isfinite(low.reg_ot_cost)),
            "sorted": soft_sort.sort(values).tolist(),
            "ranks": soft_sort.ranks(values).tolist(),
        }
    )
)
