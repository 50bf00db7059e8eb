"""Optimistix: all solvers, searches, descents, adjoints and wrappers, mapped and differentiated."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optax
import optimistix as optx

jax.config.update("jax_enable_x64", True)
results = {}


def record(name, *values):
    results[name] = [np.asarray(leaf, float).ravel().tolist() for leaf in jax.tree.leaves(values)]


def steps(solution):
    return solution.value, solution.stats["num_steps"]


tight = {"rtol": 1e-8, "atol": 1e-8}

# Minima: each solver, jitted, with aux and with derivatives of the minimum
valley = lambda p, scale: (
    (1.0 - p["x"]) ** 2 + scale * jnp.sum((p["y"] - p["x"] ** 2) ** 2 + 0.1 * p["y"] ** 2)
)
start = {"x": jnp.array(-0.4), "y": jnp.array([0.6, 0.2])}
minimisers = {
    "BFGS": optx.BFGS(**tight),
    "BFGS of the Hessian": optx.BFGS(**tight, use_inverse=False),
    "BFGS, two-norm": optx.BFGS(**tight, norm=optx.two_norm),
    "DFP": optx.DFP(**tight),
    "DFP of the Hessian": optx.DFP(**tight, use_inverse=False),
    "LBFGS": optx.LBFGS(**tight, history_length=4),
    "gradients": optx.GradientDescent(0.1, rtol=1e-5, atol=1e-5),
    "conjugate, Polak": optx.NonlinearCG(rtol=1e-6, atol=1e-6, method=optx.polak_ribiere),
    "conjugate, Fletcher": optx.NonlinearCG(rtol=1e-6, atol=1e-6, method=optx.fletcher_reeves),
    "conjugate, Hestenes": optx.NonlinearCG(rtol=1e-6, atol=1e-6, method=optx.hestenes_stiefel),
    "conjugate, Dai": optx.NonlinearCG(rtol=1e-6, atol=1e-6, method=optx.dai_yuan),
    "Nelder-Mead": optx.NelderMead(rtol=1e-6, atol=1e-6, norm=optx.rms_norm),
    "Adam": optx.OptaxMinimiser(optax.adam(0.05), rtol=1e-5, atol=1e-5),
    "best of Adam": optx.BestSoFarMinimiser(optx.OptaxMinimiser(optax.adam(0.3), 1e-5, 1e-5)),
}
for name, solver in minimisers.items():

    @eqx.filter_jit
    def minimum(start, scale, solver=solver):
        return optx.minimise(valley, solver, start, scale, max_steps=600, throw=False)

    solution = minimum(start, 2.0)
    record(f"minimum, {name}", steps(solution), solution.result == optx.RESULTS.successful)
    if name in ("BFGS", "Nelder-Mead", "LBFGS"):
        record(
            f"minimum, {name}: derivative",
            jax.jacrev(lambda s: minimum(start, s).value)(2.0),
            jax.jacfwd(lambda s: minimum(start, s).value)(2.0),
        )
        record(
            f"minimum, {name}: mapped",
            jax.vmap(lambda s: minimum(start, s).value)(jnp.array([1.0, 3.0])),
        )
golden = optx.minimise(
    lambda x, a: (x - a) ** 2 + 0.1 * x**4,
    optx.GoldenSearch(1e-8, 1e-8),
    jnp.array(0.0),
    0.7,
    options={"lower": -1.0, "upper": 2.0},
)
record("minimum, golden section", steps(golden))
compatible = optx.compat.minimize(
    lambda x, a: jnp.sum((x - a) ** 4 + x**2), jnp.zeros(3), (jnp.arange(3.0),), method="bfgs"
)
record("minimum, as SciPy", compatible)


# Searches and descents in every combination
class Custom(optx.AbstractBFGS):
    """BFGS with a given search and descent."""

    rtol: float
    atol: float
    norm: object
    use_inverse: bool
    descent: optx.AbstractDescent
    search: optx.AbstractSearch
    verbose: object


descents = {
    "Newton": optx.NewtonDescent(),
    "Newton, normed": optx.NewtonDescent(norm=optx.two_norm, linear_solver=lx.LU()),
    "damped": optx.DampedNewtonDescent(),
    "dogleg": optx.DoglegDescent(),
    "steepest": optx.SteepestDescent(norm=optx.max_norm),
}
searches = {
    "backtracking": optx.BacktrackingArmijo(decrease_factor=0.4, slope=0.2),
    "classical": optx.ClassicalTrustRegion(),
    "linear": optx.LinearTrustRegion(high_cutoff=0.9, low_cutoff=0.05),
    "rate": optx.LearningRate(0.2),
}
silent = lambda *a, **k: None
for descent, search in zip(
    ("Newton", "damped", "dogleg", "steepest", "Newton, normed"),
    ("backtracking", "classical", "linear", "backtracking", "rate"),
):
    solver = Custom(1e-6, 1e-6, optx.max_norm, False, descents[descent], searches[search], silent)
    solution = optx.minimise(
        lambda p, a: jnp.sum((p - a) ** 2 + 0.1 * (p - a) ** 4) + p[0] * p[1],
        solver,
        jnp.array([2.0, -1.0]),
        jnp.array([0.3, 0.5]),
        max_steps=200,
        throw=False,
    )
    record(f"descent {descent}, search {search}", steps(solution))

# Least squares, with auxiliary values, a PyTree of residuals, and both adjoints
times = jnp.linspace(0.0, 2.0, 8)
observed = 2.5 * jnp.exp(-1.3 * times) + 0.01 * jnp.cos(20.0 * times)


def residuals(params, observed):
    curve = params["scale"] * jnp.exp(-params["rate"] * times)
    return {"fit": curve - observed, "prior": 0.01 * params["rate"]}, jnp.sum(curve)


guess = {"scale": jnp.array(1.0), "rate": jnp.array(0.5)}
fitters = {
    "Gauss-Newton": optx.GaussNewton(**tight),
    "Gauss-Newton, QR": optx.GaussNewton(**tight, linear_solver=lx.QR()),
    "Levenberg-Marquardt": optx.LevenbergMarquardt(**tight),
    "indirect": optx.IndirectLevenbergMarquardt(
        **tight, lambda_0=1.0, root_finder=optx.Newton(rtol=1e-3, atol=1e-3)
    ),
    "dogleg": optx.Dogleg(**tight),
    "best": optx.BestSoFarLeastSquares(optx.LevenbergMarquardt(**tight)),
    "as a minimum": optx.BFGS(**tight),
}
for name, solver in fitters.items():

    @eqx.filter_jit
    def fit(observed, solver=solver):
        return optx.least_squares(residuals, solver, guess, observed, has_aux=True, throw=False)

    solution = fit(observed)
    record(f"fit, {name}", steps(solution), solution.aux)
    if name in ("Levenberg-Marquardt", "dogleg"):
        record(f"fit, {name}: derivative", jax.jacrev(lambda o: fit(o).value)(observed))
for mode in ("fwd", "bwd"):
    solution = optx.least_squares(
        lambda p, a: jnp.array([p[0] - a, p[1] * p[0] - 2.0, p[1] ** 2]),
        optx.LevenbergMarquardt(**tight),
        jnp.array([0.5, 1.5]),
        1.0,
        options={"jac": mode},
    )
    record(f"fit, Jacobian {mode}", steps(solution))

# Roots
kepler = lambda e, args: e - args[1] * jnp.sin(e) - args[0]
finders = {
    "Newton": optx.Newton(**tight),
    "Newton without Cauchy's test": optx.Newton(**tight, cauchy_termination=False),
    "chord": optx.Chord(**tight),
    "bisection": optx.Bisection(**tight),
    "bisection, expanded": optx.Bisection(**tight, expand_if_necessary=True),
    "best": optx.BestSoFarRootFinder(optx.Newton(**tight)),
    "as least squares": optx.LevenbergMarquardt(**tight),
    "as a minimum": optx.BFGS(**tight),
}
for name, solver in finders.items():
    options = {"lower": 0.0, "upper": 0.5 if "expanded" in name else 4.0}
    options = options if "bisection" in name else {}

    @eqx.filter_jit
    def root(mean, solver=solver, options=options):
        return optx.root_find(
            kepler, solver, jnp.asarray(mean, float), (mean, 0.3), options=options, max_steps=300,
            throw=False,
        )  # fmt: skip

    record(f"root, {name}", steps(root(1.0)), root(1.0).result == optx.RESULTS.successful)
    if "as" not in name:
        record(f"root, {name}: derivative", jax.grad(lambda m: root(m).value)(1.0))
        record(f"root, {name}: mapped", jax.vmap(lambda m: root(m).value)(jnp.array([0.5, 1.5])))
pair = optx.root_find(
    lambda z, a: (z[0] ** 2 + z[1] - a, z[0] - z[1] + 1.0),
    optx.Newton(**tight, linear_solver=lx.QR()),
    (jnp.array(1.5), jnp.array(2.0)),
    3.0,
    tags=frozenset(),
)
record("root, bounded", steps(optx.root_find(
    kepler, optx.Newton(**tight), jnp.array(1.0), (1.0, 0.3),
    options={"lower": jnp.array(0.0), "upper": jnp.array(1.5)}, throw=False,
)))  # fmt: skip
record("root, pair", steps(pair))

# Fixed points
contraction = lambda y, rate: jax.tree.map(lambda v: jnp.cos(rate * v), y)
for name, solver in {
    "iteration": optx.FixedPointIteration(**tight),
    "damped": optx.FixedPointIteration(**tight, damp=0.2),
    "best": optx.BestSoFarFixedPoint(optx.FixedPointIteration(**tight)),
    "by Newton": optx.Newton(**tight),
    "by Levenberg-Marquardt": optx.LevenbergMarquardt(**tight),
}.items():

    @eqx.filter_jit
    def rest(rate, solver=solver):
        y = {"a": jnp.array(0.5), "b": jnp.array([0.1, 0.9])}
        return optx.fixed_point(contraction, solver, y, rate, max_steps=200)

    record(f"fixed point, {name}", steps(rest(0.8)))
    if name in ("iteration", "by Newton"):
        record(f"fixed point, {name}: derivative", jax.jacrev(lambda r: rest(r).value)(0.8))

# Adjoints: the implicit one, and one through the steps
for name, adjoint in {
    "implicit": optx.ImplicitAdjoint(),
    "implicit, QR": optx.ImplicitAdjoint(linear_solver=lx.QR()),
    "checkpoints": optx.RecursiveCheckpointAdjoint(),
}.items():

    def through(mean, adjoint=adjoint):
        return optx.root_find(
            kepler, optx.Newton(**tight), jnp.array(1.0), (mean, 0.3), max_steps=16,
            adjoint=adjoint,
        ).value  # fmt: skip

    record(f"adjoint {name}", jax.value_and_grad(through)(1.0))

# Complex residuals, norms, dataclasses of information, stepping by hand
spectrum = optx.least_squares(
    lambda z, a: z**2 - a, optx.GaussNewton(**tight), jnp.array([1.0 + 0.5j, -1.0j]), 1.0 + 1.0j
)
record("complex", jnp.real(spectrum.value), jnp.imag(spectrum.value), spectrum.stats["num_steps"])
tree = {"a": jnp.array([3.0, -4.0]), "b": jnp.array(2.0)}
record("norms", optx.max_norm(tree), optx.rms_norm(tree), optx.two_norm(tree))
information = optx.FunctionInfo.EvalGrad(jnp.array(1.0), jnp.array([1.0, 2.0]))
record("information", information.compute_grad_dot(jnp.array([0.5, 0.25])), information.as_min())
jacobian = lx.MatrixLinearOperator(jnp.arange(6.0).reshape(3, 2))
record(
    "information of residuals",
    optx.FunctionInfo.ResidualJac(jnp.arange(3.0), jacobian).compute_grad_dot(jnp.ones(2)),
)
solver = optx.BFGS(**tight)
fn = lambda y, args: (valley(y, args), None)
f_struct, y = jax.ShapeDtypeStruct((), jnp.float64), start
state = solver.init(fn, y, 2.0, {}, f_struct, None, frozenset())
step = eqx.filter_jit(lambda y, s: solver.step(fn, y, 2.0, {}, s, frozenset()))
for _ in range(12):
    y, state, _ = step(y, state)
record("steps by hand", y, solver.terminate(fn, y, 2.0, {}, state, frozenset())[0])

# Failures
stuck = optx.root_find(
    lambda x, _: x**2 + 1.0, optx.Newton(**tight), jnp.array(0.7), max_steps=8, throw=False
)
results["without a root"] = bool(stuck.result == optx.RESULTS.successful)
try:
    optx.root_find(lambda x, _: x**2 + 1.0, optx.Newton(**tight), jnp.array(0.7), max_steps=8)
    results["raised"] = "nothing"
except Exception as error:
    results["raised"] = "maximum number of steps" in str(error) or type(error).__name__
print(json.dumps(results))
