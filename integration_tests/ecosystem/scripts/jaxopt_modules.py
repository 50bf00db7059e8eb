"""jaxopt: all solvers, line searches, projections, proximal operators, losses, linear systems."""

import json
import warnings

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
import optax
from jaxopt import (
    implicit_diff,
    linear_solve,
    loop,
    loss,
    objective,
    perturbations,
    projection,
    prox,
    tree_util,
)

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")
results = {}
rng = np.random.default_rng(0)
X = jnp.asarray(rng.normal(size=(12, 3)))
y = X @ jnp.arange(1.0, 4.0) + 0.1 * jnp.asarray(rng.normal(size=12))
data = (X, y)


def record(name, *values):
    results[name] = [np.asarray(leaf, float).ravel().tolist() for leaf in jax.tree.leaves(values)]


def ridge(w, weight, data):
    return jnp.mean((data[0] @ w - data[1]) ** 2) + weight * jnp.sum(w**2)


# Smooth minima, with derivatives of the minimum in the weight
zeros = jnp.zeros(3)
common = {"maxiter": 60, "tol": 1e-8}
smooth = {
    "gradients": jaxopt.GradientDescent(ridge, implicit_diff=True, **common),
    "gradients, accelerated": jaxopt.GradientDescent(
        ridge, acceleration=True, stepsize=0.1, **common
    ),
    "BFGS, zoom": jaxopt.BFGS(ridge, **common),
    "BFGS, backtracking": jaxopt.BFGS(ridge, linesearch="backtracking", **common),
    "LBFGS, zoom": jaxopt.LBFGS(ridge, history_size=4, **common),
    "LBFGS, Hager-Zhang": jaxopt.LBFGS(ridge, linesearch="hager-zhang", **common),
    "LBFGS, backtracking": jaxopt.LBFGS(ridge, linesearch="backtracking", **common),
    "conjugate, Polak": jaxopt.NonlinearCG(ridge, **common),
    "conjugate, Fletcher": jaxopt.NonlinearCG(ridge, method="fletcher-reeves", **common),
    "conjugate, Hestenes": jaxopt.NonlinearCG(ridge, method="hestenes-stiefel", **common),
    "Armijo": jaxopt.ArmijoSGD(ridge, momentum=0.5, **common),
    "Polyak": jaxopt.PolyakSGD(ridge, max_stepsize=0.1, momentum=0.2, **common),
    "optax": jaxopt.OptaxSolver(ridge, optax.adam(0.2), **common),
}
for name, solver in smooth.items():
    out = solver.run(zeros, 0.1, data)
    record(f"minimum, {name}", out.params)
    if name in ("gradients", "BFGS, zoom", "LBFGS, zoom", "conjugate, Polak"):
        best = lambda weight, solver=solver: solver.run(zeros, weight, data).params
        record(f"minimum, {name}: derivative", jax.jacrev(best)(0.1))
        if name == "LBFGS, zoom":
            record("minimum, mapped", jax.vmap(best)(jnp.array([0.05, 0.3])))
with_values = jaxopt.LBFGS(
    lambda w: (ridge(w, 0.1, data), jnp.sum(w)), has_aux=True, unroll=True, jit=False, maxiter=3
)
record("minimum, unrolled with aux", with_values.run(zeros).state.aux)
state = smooth["LBFGS, zoom"].init_state(zeros, 0.1, data)
params = zeros
for _ in range(3):
    params, state = smooth["LBFGS, zoom"].update(params, state, 0.1, data)
record("minimum, by hand", params, state.value, state.error)
record("optimality", smooth["LBFGS, zoom"].optimality_fun(params, 0.1, data))
iterator = jaxopt.OptaxSolver(ridge, optax.sgd(0.1), maxiter=5).run_iterator(
    zeros, iter([data] * 6), 0.1
)
record("minimum, from an iterator", iterator.params)

# Line searches
direction = -jax.grad(ridge)(zeros, 0.1, data)
for name in ("BacktrackingLineSearch", "HagerZhangLineSearch", "ZoomLineSearch"):
    search = getattr(jaxopt, name)(fun=lambda w: ridge(w, 0.1, data), maxiter=20)
    step, state = search.run(0.7, zeros, descent_direction=direction)
    record(name, step, state.params, state.iter_num, state.failed)
for condition in ("armijo", "goldstein", "strong-wolfe", "wolfe"):
    search = jaxopt.BacktrackingLineSearch(
        fun=lambda w: ridge(w, 0.1, data), condition=condition, maxiter=20
    )
    record(f"backtracking, {condition}", search.run(0.9, zeros).state.params)

# Constrained minima
fit = lambda w, data: ridge(w, 0.0, data)
bounds = jnp.full(3, -0.5), jnp.full(3, 1.5)
box = jaxopt.LBFGSB(fit, **common)
record("LBFGSB", box.run(zeros, bounds, data).params)
record("LBFGSB, derivative", jax.jacrev(
    lambda top: box.run(zeros, (bounds[0], top), data).params)(bounds[1]))  # fmt: skip
simplex = jaxopt.ProjectedGradient(fit, projection.projection_simplex, maxiter=40, tol=1e-8)
record("ProjectedGradient", simplex.run(jnp.full(3, 1 / 3), 1.0, data).params)
record("ProjectedGradient, derivative", jax.jacrev(
    lambda size: simplex.run(jnp.full(3, 1 / 3), size, data).params)(1.0))  # fmt: skip
mirror = jaxopt.MirrorDescent(
    fit, lambda x, g, step, _: jax.nn.softmax(jnp.log(x) - step * g), stepsize=0.1, **common
)
record("MirrorDescent", mirror.run(jnp.full(3, 1 / 3), None, data).params)
lasso = jaxopt.ProximalGradient(fit, prox.prox_lasso, maxiter=60, tol=1e-8)
sparse = lambda weight: lasso.run(zeros, hyperparams_prox=weight, data=data).params
record("ProximalGradient", sparse(0.9), jax.jacrev(sparse)(0.9))
block = jaxopt.BlockCoordinateDescent(objective.least_squares, prox.prox_lasso, **common)
record("BlockCoordinateDescent", block.run(zeros, 0.9, data).params)
for name, problem in {
    "multiclass": (objective.multiclass_logreg, jnp.zeros((3, 2)), (X, jnp.arange(12) % 2)),
    "binary": (objective.binary_logreg, zeros, (X, jnp.arange(12) % 2)),
}.items():
    fun, start, samples = problem
    solver = jaxopt.BlockCoordinateDescent(fun, prox.prox_lasso, maxiter=20, tol=1e-6)
    record(f"BlockCoordinateDescent, {name}", solver.run(start, 0.05, samples).params)

# Quadratic programs
Q = X.T @ X + jnp.eye(3)
c = jnp.array([1.0, -2.0, 0.5])
A, b = jnp.array([[1.0, 1.0, 1.0]]), jnp.array([1.0])
G, h = -jnp.eye(3), jnp.zeros(3)
programs = {
    "OSQP": (jaxopt.OSQP(tol=1e-6), {"params_eq": (A, b), "params_ineq": (G, h)}),
    "BoxOSQP": (
        jaxopt.BoxOSQP(tol=1e-6, eq_qp_solve="lu"),
        {"params_eq": jnp.eye(3), "params_ineq": (-jnp.ones(3), jnp.full(3, 0.1))},
    ),
    "EqualityConstrainedQP": (jaxopt.EqualityConstrainedQP(), {"params_eq": (A, b)}),
}
for name, (solver, constraints) in programs.items():
    primal = lambda c, s=solver, k=constraints: s.run(params_obj=(Q, c), **k).params.primal
    record(name, primal(c), jax.jacrev(primal)(c))
quadratic = jaxopt.OSQP(fun=lambda x, c: 0.5 * x @ Q @ x + c @ x, tol=1e-6)
record("OSQP of a function", quadratic.run(
    init_params=quadratic.init_params(zeros, c, (A, b), None),
    params_obj=c, params_eq=(A, b)).params.primal)  # fmt: skip
coordinates = jaxopt.BoxCDQP(tol=1e-8, maxiter=30)
record("BoxCDQP", coordinates.run(
    zeros, params_obj=(Q, c), params_ineq=(-jnp.ones(3), jnp.full(3, 0.1))).params)  # fmt: skip

# Roots, fixed points, residuals
cubic = lambda x, a: x**3 - x - a
bisection = jaxopt.Bisection(cubic, lower=1.0, upper=2.0, tol=1e-10)
record("Bisection", *jax.value_and_grad(lambda a: bisection.run(a=a).params)(1.0))
broyden = jaxopt.Broyden(lambda x, a: x - a * jnp.cos(x), tol=1e-10, maxiter=40)
root = lambda a: broyden.run(jnp.array([0.5, 0.3]), a).params
record("Broyden", root(0.8), jax.jacrev(root)(0.8))
cosine = lambda x, a: jnp.cos(a * x)
for name, solver in {
    "iteration": jaxopt.FixedPointIteration(cosine, maxiter=100, tol=1e-10, implicit_diff=True),
    "Anderson": jaxopt.AndersonAcceleration(cosine, history_size=3, maxiter=30, tol=1e-10),
}.items():
    rest = lambda a, solver=solver: solver.run(jnp.array([0.5, 0.2]), a).params
    record(f"fixed point, {name}", rest(0.9), jax.jacrev(rest)(0.9))
wrapped = jaxopt.AndersonWrapper(
    jaxopt.GradientDescent(ridge, stepsize=0.05, acceleration=False, maxiter=30), history_size=3
)
record("AndersonWrapper", wrapped.run(zeros, 0.1, data).params)
decay = lambda p, t: p[0] * jnp.exp(p[1] * t) - 2.0 * jnp.exp(-t) - 0.01 * jnp.cos(9 * t)
times = jnp.linspace(0.0, 1.0, 6)
for name, solver in {
    "GaussNewton": jaxopt.GaussNewton(decay, tol=1e-8),
    "LevenbergMarquardt": jaxopt.LevenbergMarquardt(decay, tol=1e-10, xtol=1e-10, gtol=1e-10),
    "LevenbergMarquardt, Cholesky": jaxopt.LevenbergMarquardt(
        decay, solver="cholesky", materialize_jac=True, geodesic=True, tol=1e-10
    ),
}.items():
    curve = lambda t, solver=solver: solver.run(jnp.array([1.5, -0.7]), t).params
    record(name, curve(times), jax.jacrev(curve)(times))

# SciPy's solvers
for method in ("BFGS", "L-BFGS-B", "CG"):
    record(f"ScipyMinimize, {method}", jaxopt.ScipyMinimize(
        fun=ridge, method=method, tol=1e-10).run(zeros, 0.1, data).params)  # fmt: skip
minimize = jaxopt.ScipyMinimize(fun=ridge, tol=1e-10)
record("ScipyMinimize, derivative", jax.jacrev(
    lambda weight: minimize.run(zeros, weight, data).params)(0.1))  # fmt: skip
record(
    "ScipyBoundedMinimize",
    jaxopt.ScipyBoundedMinimize(fun=fit, method="l-bfgs-b", tol=1e-10)
    .run(zeros, bounds, data)
    .params,
)
record("ScipyLeastSquares", jaxopt.ScipyLeastSquares(fun=decay, method="trf").run(
    jnp.array([1.5, -0.7]), times).params)  # fmt: skip
record(
    "ScipyBoundedLeastSquares",
    jaxopt.ScipyBoundedLeastSquares(fun=decay, method="trf")
    .run(jnp.array([1.5, -0.7]), (jnp.array([0.0, -0.9]), jnp.array([3.0, 0.0])), times)
    .params,
)
record("ScipyRootFinding", jaxopt.ScipyRootFinding(
    optimality_fun=lambda x, a: x - a * jnp.cos(x), method="hybr").run(
    jnp.array([0.5, 0.3]), 0.8).params)  # fmt: skip

# Projections and proximal operators, with Jacobians
v = jnp.array([0.9, -0.4, 1.7, 0.2])
one, two = jnp.ones(4), jnp.array([0.5, -1.0, 2.0, 1.0])
projections = {
    "non_negative": (None,),
    "box": ((-0.3 * one, 0.8 * one),),
    "hypercube": (0.7,),
    "simplex": (1.2,),
    "l1_sphere": (0.9,),
    "l1_ball": (1.1,),
    "l2_sphere": (1.3,),
    "l2_ball": (0.9,),
    "linf_ball": (0.6,),
    "hyperplane": ((two, 0.4),),
    "halfspace": ((two, 0.4),),
    "affine_set": ((jnp.stack([one, two]), jnp.array([1.0, 0.3])),),
    "box_section": ((0 * one, one, one, 1.5),),
}
for name, parameters in projections.items():
    function = getattr(projection, f"projection_{name}")
    record(f"projection, {name}", function(v, *parameters), jax.jacrev(function)(v, *parameters))
record("projection, sparse simplex", projection.projection_sparse_simplex(v, 2), jax.jacrev(
    lambda x: projection.projection_sparse_simplex(x, 2))(v))  # fmt: skip
record("projection, polyhedron", projection.projection_polyhedron(
    v, (one[None], jnp.array([1.0]), -jnp.eye(4), 0 * one), check_feasible=False))  # fmt: skip
similarity = jnp.asarray(rng.normal(size=(3, 4)))
marginals = jnp.full(3, 1 / 3), jnp.full(4, 0.25)
for name in ("projection_transport", "kl_projection_transport"):
    for semi in (True, False):
        transport = getattr(projection, name)
        record(f"{name}, {semi}", transport(similarity, marginals, use_semi_dual=semi))
for name in ("projection_birkhoff", "kl_projection_birkhoff"):
    record(name, getattr(projection, name)(similarity[:, :3]))
for name in ("none", "lasso", "non_negative_lasso", "group_lasso", "ridge", "non_negative_ridge"):
    function = getattr(prox, f"prox_{name}")
    record(f"prox, {name}", function(v, 0.3, 0.9), jax.jacrev(function)(v, 0.3, 0.9))
record("prox, elastic net", prox.prox_elastic_net(v, (0.3, 0.5), 0.9))
record(
    "prox, from a projection", prox.make_prox_from_projection(projection.projection_simplex)(v, 1.0)
)

# Losses and objectives, with gradients
for name in ("huber", "binary_logistic", "binary_sparsemax", "binary_hinge", "binary_perceptron"):
    function = getattr(loss, f"{name}_loss")
    scores = jnp.array([-1.7, -0.2, 0.4, 2.1])
    labels = jnp.array([0, 1, 1, 0])
    record(f"loss, {name}", jax.vmap(jax.value_and_grad(function, argnums=1))(
        labels if name != "huber" else 1.0 * labels, scores))  # fmt: skip
for name in ("logistic", "sparsemax", "hinge", "perceptron"):
    function = getattr(loss, f"multiclass_{name}_loss")
    record(f"loss, multiclass {name}", jax.value_and_grad(function, argnums=1)(2, v))
record(
    "loss, sparse", loss.sparse_plus(0.3), jax.grad(loss.sparse_plus)(0.3), loss.sparse_sigmoid(v)
)
young = loss.make_fenchel_young_loss(jax.nn.logsumexp)
record("loss, Fenchel-Young", jax.value_and_grad(young, argnums=1)(jax.nn.one_hot(1, 4), v))
W, classes = jnp.asarray(rng.normal(size=(3, 3))), jnp.arange(12) % 3
objectives = {
    "least_squares": (W[0], data),
    "ridge_regression": (W[0], 0.3, data),
    "binary_logreg": (W[0], (X, classes % 2)),
    "multiclass_logreg": (W, (X, classes)),
    "multiclass_logreg_with_intercept": ((W, W[0]), (X, classes)),
    "l2_multiclass_logreg": (W, 0.2, (X, classes)),
    "l2_multiclass_logreg_with_intercept": ((W, W[0]), 0.2, (X, classes)),
    "multiclass_linear_svm_dual": (
        jax.nn.one_hot(classes, 3) * 0.5,
        0.2,
        (X, jax.nn.one_hot(classes, 3)),
    ),
}
for name, arguments in objectives.items():
    record(f"objective, {name}", jax.value_and_grad(getattr(objective, name))(*arguments))

# Linear systems
matvec, right = lambda x: Q @ x, jnp.array([1.0, -1.0, 2.0])
for name in ("lu", "cholesky", "inv", "qr", "cg", "normal_cg", "gmres", "bicgstab",
             "iterative_refinement"):  # fmt: skip
    function = getattr(linear_solve, f"solve_{name}")
    record(f"solve, {name}", function(matvec, right))
    if name not in ("iterative_refinement",):
        record(
            f"solve, {name}: ridge", jax.jit(lambda b, f=function: f(matvec, b, ridge=0.3))(right)
        )

# Perturbed functions, implicit differentiation, loops, trees
argmax = lambda x: jax.nn.one_hot(jnp.argmax(x), 4)
key = jax.random.key(1)
for noise in (perturbations.Gumbel(), perturbations.Normal()):
    label = type(noise).__name__
    soft = perturbations.make_perturbed_argmax(argmax, 50, 0.5, noise)
    record(f"perturbed argmax, {label}", soft(v, key), jax.jacrev(soft)(v, key))
    top = perturbations.make_perturbed_max(argmax, 50, 0.5, noise)
    record(f"perturbed maximum, {label}", jax.value_and_grad(top)(v, key))
    smooth_max = perturbations.make_perturbed_fun(jnp.max, 50, 0.5, noise)
    record(f"perturbed function, {label}", jax.value_and_grad(smooth_max)(v, key))


@implicit_diff.custom_root(jax.grad(ridge))
def closed(start, weight, data):
    inner = data[0].T @ data[0] / 12 + weight * jnp.eye(3)
    return jnp.linalg.solve(inner, data[0].T @ data[1] / 12)


record("custom root", jax.jacrev(closed, argnums=1)(zeros, 0.1, data))


@implicit_diff.custom_fixed_point(cosine)
def settled(start, a):
    return jax.lax.fori_loop(0, 60, lambda _, x: jnp.cos(a * x), start)


record("custom fixed point", jax.grad(settled, argnums=1)(0.5, 0.9))
record(
    "root_jvp",
    implicit_diff.root_jvp(
        jax.grad(ridge),
        closed(zeros, 0.1, data),
        (0.1, data),
        (1.0, jax.tree.map(jnp.ones_like, data)),
        linear_solve.solve_cg,
    ),
)
record("root_vjp", implicit_diff.root_vjp(
    jax.grad(ridge), closed(zeros, 0.1, data), (0.1, data), right))  # fmt: skip
for unroll, jit in ((True, True), (False, True), (True, False)):
    record(
        f"loop {unroll} {jit}",
        loop.while_loop(
            lambda s: s < 100.0, lambda s: 1.7 * s, 3.0, maxiter=20, unroll=unroll, jit=jit
        ),
    )
tree, other = {"a": v, "b": v[:2]}, {"a": 2 * one, "b": jnp.array([0.5, -0.5])}
for name in ("add", "sub", "mul", "div", "dot", "vdot"):
    record(f"tree_{name}", getattr(tree_util, f"tree_{name}")(tree, other))
for name in ("sum", "l2_norm", "inf_norm", "negative", "zeros_like", "ones_like", "conj", "real"):
    record(f"tree_{name}", getattr(tree_util, f"tree_{name}")(tree))
record("tree_scalar_mul", tree_util.tree_scalar_mul(2.0, tree))
record("tree_add_scalar_mul", tree_util.tree_add_scalar_mul(tree, 0.5, other))
try:
    jaxopt.LBFGS(ridge, linesearch="unknown").run(zeros, 0.1, data)
    results["raised"] = "nothing"
except ValueError as error:
    results["raised"] = str(error)
print(json.dumps(results))
