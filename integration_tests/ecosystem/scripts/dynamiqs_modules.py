"""dynamiqs: all solvers, methods, gradients, time-dependent operators, states and operators."""

import json
import warnings

import dynamiqs as dq
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

warnings.simplefilter("ignore")
dq.set_precision("double")
dq.set_progress_meter(False)
results = {}
N = 4


def record(name, *values):
    """The values of small leaves, and sums of the others."""
    results[name] = numbers = []
    for leaf in jax.tree.leaves(values, is_leaf=lambda x: isinstance(x, dq.QArray)):
        array = np.nan_to_num(
            np.asarray(dq.to_numpy(leaf) if isinstance(leaf, dq.QArray) else leaf)
        )
        parts = (array.real, array.imag) if np.iscomplexobj(array) else (array.astype(float),)
        for part in parts:
            small = part.size < 10
            numbers.append(part.ravel().tolist() if small else [part.sum(), abs(part).sum()])


# Operators and states
operators = {
    "destroy": dq.destroy(N), "create": dq.create(N), "number": dq.number(N),
    "parity": dq.parity(N), "displace": dq.displace(N, 0.3 + 0.1j), "squeeze": dq.squeeze(N, 0.2j),
    "quadrature": dq.quadrature(N, 0.4), "position": dq.position(N), "momentum": dq.momentum(N),
    "x": dq.sigmax(), "y": dq.sigmay(), "z": dq.sigmaz(), "plus": dq.sigmap(), "minus": dq.sigmam(),
    "hadamard": dq.hadamard(2), "rx": dq.rx(0.3), "ry": dq.ry(0.3), "rz": dq.rz(0.3),
    "s": dq.sgate(), "t": dq.tgate(), "cnot": dq.cnot(), "toffoli": dq.toffoli(),
    "eye": dq.eye(2, 3), "zeros": dq.zeros(3), "snap": dq.snap_gate(jnp.array([0.1, 0.4, 0.9])),
    "dense": dq.destroy(N, layout=dq.dense), "xyz": dq.xyz(), "pair": dq.destroy(2, 3),
    "conditional": dq.cd_gate(N, 0.3),
}  # fmt: skip
for name, operator in operators.items():
    record(f"operator, {name}", operator)
states = {
    "fock": dq.fock(N, 1), "fock_dm": dq.fock_dm(N, [0, 2]), "coherent": dq.coherent(N, 0.4j),
    "coherent_dm": dq.coherent_dm(N, 0.3), "thermal": dq.thermal_dm(N, 0.2), "cat": dq.cat(N, 0.7),
    "cat_dm": dq.cat_dm(N, 0.7, 0.2), "ground": dq.ground(), "excited": dq.excited_dm(),
    "pair": dq.basis((2, 3), (1, 2)), "random": dq.random.ket(jax.random.key(1), N),
    "random_dm": dq.random.dm(jax.random.key(2), N), "vacuum": dq.vacuum(N),
}  # fmt: skip
for name, state in states.items():
    record(f"state, {name}", state)
for name in ("real", "complex", "herm", "psd", "dm", "ket"):
    shape = N if name in ("ket", "dm") else (N, N)
    record(f"random, {name}", getattr(dq.random, name)(jax.random.key(4), shape))

# Functions of operators and states
a, rho, psi, sigma = operators["destroy"], states["random_dm"], states["random"], states["thermal"]
h = a.dag() @ a + 0.2 * (a + a.dag())
functions = {
    "dag": dq.dag(a),
    "powm": dq.powm(h, 3),
    "expm": dq.expm(1j * h),
    "cosm": dq.cosm(h),
    "sinm": dq.sinm(h),
    "signm": dq.signm(h - 0.7 * dq.eye(N)),
    "trace": dq.trace(rho),
    "tracemm": dq.tracemm(rho, h),
    "ptrace": dq.ptrace(dq.tensor(rho, sigma), 0),
    "expect": dq.expect(h, rho),
    "norm": dq.norm(rho),
    "unit": dq.unit(3 * psi),
    "dissipator": dq.dissipator(a, rho),
    "lindbladian": dq.lindbladian(h, [a], rho),
    "proj": dq.proj(psi),
    "braket": dq.braket(psi, states["fock"]),
    "overlap": dq.overlap(psi, rho),
    "fidelity": dq.fidelity(rho, sigma),
    "purity": dq.purity(rho),
    "entropy": dq.entropy_vn(rho),
    "relative": dq.entropy_relative(rho, sigma),
    "bloch": dq.bloch_coordinates(dq.rx(0.3) @ dq.ground()),
    "vectorize": dq.unvectorize(dq.vectorize(rho)),
    "spre": dq.spre(h),
    "spost": dq.spost(h),
    "sprepost": dq.sprepost(h, a),
    "sdissipator": dq.sdissipator(a),
    "slindbladian": dq.slindbladian(h, [a]),
    "todm": dq.todm(psi),
    "tobra": dq.tobra(psi),
    "wigner": dq.wigner(rho, npixels=5)[2],
    "checks": [dq.isket(psi), dq.isop(h), dq.isherm(h)],
    "stack": dq.stack([h, a]),
    "sum": (h + 1.5 * a - dq.eye(N)),
    "product": h @ a @ rho,
    "powers": h.powm(2).asdense(),
    "elements": h.elmul(a),
    "dia": dq.asqarray(np.eye(3), layout=dq.dia),
}
for name, value in functions.items():
    record(f"function, {name}", value)
record("gradient of a fidelity", jax.grad(
    lambda t: dq.fidelity(dq.expm(-1j * t * h) @ psi, states["fock"]))(0.4))  # fmt: skip

# Time-dependent operators
pulse = lambda t: jnp.sin(2 * t)
times = jnp.linspace(0.0, 1.0, 5)
drives = {
    "constant": dq.constant(h),
    "pieces": dq.pwc(times, jnp.array([0.3, -0.2, 0.5, 0.1]), a + a.dag()),
    "modulated": dq.modulated(pulse, a + a.dag()),
    "callable": dq.timecallable(lambda t: pulse(t) * (a + a.dag())),
    "sum": h + dq.modulated(pulse, a + a.dag()),
    "clipped": dq.modulated(pulse, a + a.dag()).clip(0.2, 0.7),
}
for name, drive in drives.items():
    record(f"drive, {name}", drive(0.31), drive(0.9), (2.0 * drive)(0.31))

# Schrödinger's and Lindblad's equations
adaptive = {"rtol": 1e-7, "atol": 1e-7}
tight = {"rtol": 1e-8, "atol": 1e-8}
methods = {
    "Euler": dq.method.Euler(0.05), "Tsit5": dq.method.Tsit5(**tight),
    "Dopri5": dq.method.Dopri5(**tight), "Dopri8": dq.method.Dopri8(**tight),
    "Kvaerno3": dq.method.Kvaerno3(**adaptive), "Expm": dq.method.Expm(),
    "Rouchon1": dq.method.Rouchon1(0.05), "Rouchon2": dq.method.Rouchon2(**tight),
    "Rouchon3": dq.method.Rouchon3(dt=0.05),
}  # fmt: skip
jumps = [jnp.sqrt(0.2) * a]
for name, method in methods.items():
    if "Rouchon" not in name:
        out = dq.sesolve(h, psi, times, exp_ops=[h], method=method)
        record(f"sesolve, {name}", out.states, out.expects)
    if name not in ("Dopri8", "Kvaerno3"):
        out = dq.mesolve(h, jumps, rho, times, exp_ops=[h], method=method)
        record(f"mesolve, {name}", out.states, out.expects)
for name, drive in drives.items():
    if name in ("pieces", "sum", "clipped"):
        record(f"sesolve, {name}", dq.sesolve(drive, psi, times).states)
record("sepropagator", dq.sepropagator(drives["sum"], times).propagators)
record("sepropagator, constant", dq.sepropagator(h, times).propagators)
record("mepropagator", dq.mepropagator(h, jumps, times).propagators)
period = dq.floquet(h + dq.modulated(pulse, a + a.dag()), jnp.pi, times)
record("floquet", jnp.sort(period.quasienergies))
batched = dq.stack([0.5 * h, 1.0 * h])
mixed = dq.stack([rho, sigma])
record("batched", dq.mesolve(batched, jumps, mixed, times).states)
flat = dq.mesolve(batched, jumps, mixed, times, cartesian_batching=False)
record("batched, flat", flat.states)
low = dq.method.LowRank(2, ode_method=dq.method.Tsit5(**tight), key=jax.random.key(1))
record("low rank", dq.mesolve(h, jumps, psi, times, exp_ops=[h], method=low).expects)


def energy(scale, gradient, solve):
    if solve == "sesolve":
        out = dq.sesolve(scale * h, dq.basis(N, 1), times, exp_ops=[a + a.dag()], gradient=gradient)
    else:
        out = dq.mesolve(
            scale * h, jumps, dq.basis(N, 1), times, exp_ops=[a + a.dag()], gradient=gradient
        )
    return out.expects[0, -1].real


for solve, name in (
    ("sesolve", "BackwardCheckpointed"),
    ("sesolve", "Forward"),
    ("mesolve", "Forward"),
):
    derivative = jax.jacfwd if name == "Forward" else jax.grad
    gradient = getattr(dq.gradient, name)()
    record(f"gradient, {solve}, {name}", derivative(energy)(0.7, gradient, solve))

# Stochastic equations
keys = jax.random.split(jax.random.key(11), 2)
event = dq.method.Event(
    noclick_method=dq.method.Tsit5(), dtmax=0.1, root_finder=optx.Newton(1e-5, 1e-5)
)
for name, method in {"event": event, "Euler": dq.method.EulerJump(0.05)}.items():
    out = dq.jssesolve(h, jumps, psi, times, keys, exp_ops=[h], method=method)
    record(f"jssesolve, {name}", out.states, out.expects, out.clicktimes)
out = dq.dssesolve(h, jumps, psi, times, keys, exp_ops=[h], method=dq.method.EulerMaruyama(0.05))
record("dssesolve", out.states, out.measurements)
for name, method in {
    "Euler": dq.method.EulerMaruyama(0.05), "Rouchon": dq.method.Rouchon1(0.05),
}.items():  # fmt: skip
    out = dq.dsmesolve(h, jumps, [0.7], rho, times, keys, exp_ops=[h], method=method)
    record(f"dsmesolve, {name}", out.states, out.measurements)
out = dq.jsmesolve(h, jumps, [0.01], [0.6], rho, times, keys, exp_ops=[h],
                   method=dq.method.EulerJump(0.05))  # fmt: skip
record("jsmesolve", out.states, out.clicktimes)
try:
    dq.sesolve(h, rho, times)
    results["raised"] = "nothing"
except Exception as error:
    results["raised"] = type(error).__name__
print(json.dumps(results))
