"""Diffrax: explicit, implicit and stochastic solvers, adjoints, events, dense output."""

import json

import diffrax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def oscillator(t, y, damping):
    return jnp.array([y[1], -y[0] - damping * y[1]])


CHECKPOINTED = diffrax.RecursiveCheckpointAdjoint()


def solve(damping, adjoint=CHECKPOINTED):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(oscillator), diffrax.Tsit5(), 0.0, 5.0, 0.1, jnp.array([1.0, 0.0]),
        args=damping, saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 5.0, 6)), adjoint=adjoint,
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-8),
    )  # fmt: skip


def last(damping, adjoint):
    return solve(damping, adjoint).ys[-1, 0]


solution = solve(0.3)
adjoints = (CHECKPOINTED, diffrax.BacksolveAdjoint())
gradients = [float(jax.jit(jax.grad(lambda d, a=a: last(d, a)))(0.3)) for a in adjoints]
forward = float(jax.jvp(lambda d: last(d, diffrax.ForwardMode()), (0.3,), (1.0,))[1])


def stiff(t, y, args):
    slow, fast, pair = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return jnp.stack([fast - slow, slow - fast - pair, pair])


robertson = diffrax.diffeqsolve(
    diffrax.ODETerm(stiff), diffrax.Kvaerno5(), 0.0, 10.0, 1e-4, jnp.array([1.0, 0.0, 0.0]),
    stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-9),
)  # fmt: skip
path = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(), key=jax.random.key(0))
terms = diffrax.MultiTerm(
    diffrax.ODETerm(lambda t, y, args: -y),
    diffrax.ControlTerm(lambda t, y, args: 0.2 * y, path),
)
stochastic = diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.01, 1.0)
falling = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, args: jnp.array([y[1], -9.8])), diffrax.Dopri5(), 0.0, jnp.inf,
    0.1, jnp.array([10.0, 0.0]), event=diffrax.Event(lambda t, y, args, **rest: y[0] < 0.0),
    saveat=diffrax.SaveAt(t1=True), stepsize_controller=diffrax.PIDController(1e-6, 1e-6),
)  # fmt: skip
dense = diffrax.diffeqsolve(
    diffrax.ODETerm(oscillator), diffrax.Dopri8(), 0.0, 2.0, 0.05, jnp.array([1.0, 0.0]),
    args=0.1, saveat=diffrax.SaveAt(dense=True),
)  # fmt: skip
batch = jax.vmap(lambda d: solve(d).ys[-1])(jnp.array([0.0, 0.5, 1.0]))
print(
    json.dumps(
        {
            "ys": solution.ys.tolist(),
            "steps": int(solution.stats["num_accepted_steps"]),
            "gradients": [*gradients, forward],
            "robertson": robertson.ys[-1].tolist(),
            "stochastic": float(stochastic.ys[-1]),
            "event": float(falling.ts[-1]),
            "dense": jax.vmap(dense.evaluate)(jnp.array([0.3, 1.1])).tolist(),
            "batch": batch.tolist(),
        }
    )
)
