"""Diffrax: all solvers, controllers, adjoints, ways of saving, paths, interpolations and events."""

import json

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import optimistix as optx

jax.config.update("jax_enable_x64", True)
results = {}


def record(name, *values):
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(values)]
    results[name] = [float(jnp.sum(jnp.where(jnp.isfinite(v), v, 0))) for v in leaves]


def pendulum(t, y, args):
    return jnp.array([y[1], -args * jnp.sin(y[0]) - 0.1 * y[1]])


term, start = dfx.ODETerm(pendulum), jnp.array([1.0, 0.2])
explicit = ("Euler", "Heun", "Midpoint", "Ralston", "Bosh3", "Tsit5", "Dopri5", "Dopri8")
implicit = ("ImplicitEuler", "Kvaerno3", "Kvaerno4", "Kvaerno5")
for name in (*explicit, *implicit, "ReversibleHeun", "LeapfrogMidpoint"):
    solver = getattr(dfx, name)()
    if name in implicit:
        solver = getattr(dfx, name)(root_finder=optx.Newton(rtol=1e-8, atol=1e-8))

    def solve(y, solver=solver):
        return dfx.diffeqsolve(term, solver, 0.0, 1.0, 0.05, y, args=2.0).ys

    record(name, solve(start))
    if name in ("Tsit5", "Kvaerno5", "ReversibleHeun"):
        record(f"{name}: gradient", jax.jacrev(solve)(start))
        record(f"{name}: mapped", jax.vmap(solve)(jnp.stack([start, 2 * start])))

split = dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -0.1 * y), dfx.ODETerm(lambda t, y, a: -9 * y))
for name in ("KenCarp3", "KenCarp4", "Sil3"):
    solver, adaptive = getattr(dfx, name)(), dfx.PIDController(1e-6, 1e-6)
    out = dfx.diffeqsolve(split, solver, 0.0, 1.0, 0.02, start, stepsize_controller=adaptive)
    record(name, out.ys)
position = dfx.ODETerm(lambda t, v, args: v), dfx.ODETerm(lambda t, x, args: -x)
record(
    "SemiImplicitEuler",
    dfx.diffeqsolve(position, dfx.SemiImplicitEuler(), 0.0, 1.0, 0.05, (start[0], start[1])).ys,
)
record(
    "HalfSolver",
    dfx.diffeqsolve(
        term,
        dfx.HalfSolver(dfx.Heun()),
        0.0,
        1.0,
        None,
        start,
        args=2.0,
        stepsize_controller=dfx.PIDController(1e-6, 1e-6),
    ).ys,
)

# Step sizes
controllers = {
    "constant": dfx.ConstantStepSize(),
    "steps": dfx.StepTo(ts=jnp.linspace(0.0, 1.0, 9)),
    "PID": dfx.PIDController(1e-7, 1e-7, pcoeff=0.3, icoeff=0.4, dcoeff=0.1, dtmax=0.2),
    "clipped": dfx.ClipStepSizeController(
        dfx.PIDController(1e-6, 1e-6), step_ts=jnp.array([0.3, 0.7]), jump_ts=jnp.array([0.5])
    ),
}
for name, controller in controllers.items():
    first = None if name == "steps" else 0.05
    out = dfx.diffeqsolve(
        term,
        dfx.Tsit5(),
        0.0,
        1.0,
        first,
        start,
        args=2.0,
        stepsize_controller=controller,
        saveat=dfx.SaveAt(steps=True),
        max_steps=256,
    )
    record(f"controller {name}", out.ys, out.ts, out.stats["num_steps"])

# Saving
saving = {
    "t0 and t1": dfx.SaveAt(t0=True, t1=True),
    "ts": dfx.SaveAt(ts=jnp.linspace(0, 1, 5)),
    "function": dfx.SaveAt(ts=jnp.linspace(0, 1, 5), fn=lambda t, y, args: y[0] * t),
    "parts": dfx.SaveAt(subs={
        "end": dfx.SubSaveAt(t1=True), "all": dfx.SubSaveAt(ts=jnp.array([0.2, 0.4])),
    }),
    "states": dfx.SaveAt(t1=True, solver_state=True, controller_state=True),
}  # fmt: skip
for name, saveat in saving.items():
    out = dfx.diffeqsolve(
        term,
        dfx.Dopri5(),
        0.0,
        1.0,
        0.05,
        start,
        args=2.0,
        saveat=saveat,
        stepsize_controller=controllers["PID"],
    )
    record(f"saving {name}", out.ys, out.ts)
dense = dfx.diffeqsolve(
    term, dfx.Dopri5(), 0.0, 1.0, 0.05, start, 2.0, saveat=dfx.SaveAt(dense=True)
)
times = jnp.linspace(0.0, 1.0, 7)
record("dense", jax.vmap(dense.evaluate)(times), jax.vmap(dense.derivative)(times[1:-1]))

# Adjoints
adjoints = {
    "checkpoints": dfx.RecursiveCheckpointAdjoint(checkpoints=4),
    "direct": dfx.DirectAdjoint(),
    "backsolve": dfx.BacksolveAdjoint(),
    "forward": dfx.ForwardMode(),
}
for name, adjoint in adjoints.items():

    def loss(args, y, adjoint=adjoint):
        out = dfx.diffeqsolve(
            term,
            dfx.Tsit5(),
            0.0,
            1.0,
            0.05,
            y,
            args,
            adjoint=adjoint,
            stepsize_controller=dfx.PIDController(1e-8, 1e-8),
            max_steps=64,
        )
        return jnp.sum(out.ys**2)

    derivative = jax.jacfwd if name == "forward" else jax.grad
    record(f"adjoint {name}", derivative(loss, argnums=(0, 1))(2.0, start))
decay = dfx.ODETerm(lambda t, y, a: a - y**3)
steady = dfx.Event(dfx.steady_state_event(1e-8, 1e-8))


def rest(a):
    return dfx.diffeqsolve(
        decay,
        dfx.Kvaerno5(),
        0.0,
        jnp.inf,
        0.1,
        jnp.array(1.0),
        a,
        event=steady,
        adjoint=dfx.ImplicitAdjoint(),
        stepsize_controller=dfx.PIDController(1e-9, 1e-9),
        max_steps=512,
    ).ys[0]


record("steady state", rest(8.0), jax.grad(rest)(8.0))

# Events
fall = dfx.ODETerm(lambda t, y, args: jnp.array([y[1], -9.8]))
landing = dfx.Event(lambda t, y, args, **kw: y[0], optx.Newton(1e-9, 1e-9), direction=False)


def land(height):
    out = dfx.diffeqsolve(
        fall, dfx.Tsit5(), 0.0, 10.0, 0.1, jnp.array([height, 0.0]), event=landing
    )
    return out.ts[-1], out.ys[-1], out.event_mask


record("event", land(10.0), jax.grad(lambda h: land(h)[0])(10.0))

# Stochastic equations
key = jr.key(3)
for levy in (dfx.BrownianIncrement, dfx.SpaceTimeLevyArea, dfx.SpaceTimeTimeLevyArea):
    tree = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (2,), key, levy_area=levy)
    piece = tree.evaluate(0.2, 0.7, use_levy=True)
    record(f"tree {levy.__name__}", piece)
    record(
        f"path {levy.__name__}",
        dfx.UnsafeBrownianPath((2,), key, levy_area=levy).evaluate(0.2, 0.7, use_levy=True),
    )
    drift = dfx.ODETerm(lambda t, y, args: -0.5 * y)
    noise = dfx.ControlTerm(lambda t, y, args: lx.DiagonalLinearOperator(0.3 * y), tree)
    constant = dfx.ControlTerm(lambda t, y, args: lx.DiagonalLinearOperator(jnp.full(2, 0.3)), tree)
    solvers = {
        dfx.BrownianIncrement: ("EulerHeun", "ItoMilstein", "StratonovichMilstein", "Heun"),
        dfx.SpaceTimeLevyArea: ("SRA1", "ShARK", "SEA"),
        dfx.SpaceTimeTimeLevyArea: (),
    }[levy]
    for name in solvers:
        terms = dfx.MultiTerm(drift, constant if name in ("SRA1", "ShARK", "SEA") else noise)
        out = dfx.diffeqsolve(terms, getattr(dfx, name)(), 0.0, 1.0, 0.05, start)
        record(name, out.ys)
tree = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (2,), key, levy_area=dfx.SpaceTimeTimeLevyArea)
langevin = dfx.MultiTerm(
    dfx.UnderdampedLangevinDriftTerm(1.0, 1.0, lambda x, args: x),
    dfx.UnderdampedLangevinDiffusionTerm(1.0, 1.0, tree),
)
for name in ("ALIGN", "ShOULD", "QUICSORT"):
    solver = getattr(dfx, name)(0.01)
    out = dfx.diffeqsolve(langevin, solver, 0.0, 1.0, 0.05, (start, jnp.zeros(2)))
    record(name, out.ys)

# Interpolated controls
ts, ys = jnp.linspace(0.0, 1.0, 6), jnp.sin(3 * jnp.linspace(0.0, 1.0, 6))[:, None]
gaps = ys.at[2].set(jnp.nan)
record("linear", dfx.linear_interpolation(ts, gaps))
record("rectilinear", dfx.rectilinear_interpolation(ts, ys))
coefficients = dfx.backward_hermite_coefficients(ts, gaps)
for path in (dfx.LinearInterpolation(ts, ys), dfx.CubicInterpolation(ts, coefficients)):
    record(type(path).__name__, path.evaluate(0.35), path.derivative(0.35), path.evaluate(0.1, 0.8))
    control = dfx.ControlTerm(lambda t, y, args: jnp.outer(jnp.tanh(y), jnp.ones(1)), path)
    record(
        f"controlled by {type(path).__name__}",
        dfx.diffeqsolve(control.to_ode(), dfx.Tsit5(), 0.0, 1.0, 0.05, start).ys,
    )

# Failures are results or errors
limited = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, 0.05, start, 2.0, max_steps=3, throw=False)
results["limit"] = bool(limited.result == dfx.RESULTS.max_steps_reached)
try:
    dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, 0.05, start, 2.0, max_steps=3)
    results["raised"] = "nothing"
except Exception as error:
    results["raised"] = "maximum number of solver steps" in str(error)
print(json.dumps(results))
