"""NetKet: spaces, graphs, operators, models, samplers, states, drivers and its mathematics."""

import json
import warnings

import jax
import jax.numpy as jnp
import netket as nk
import netket.experimental as nkx
import numpy as np
import scipy.sparse

warnings.simplefilter("ignore")
results = {}


def record(name, *values):
    """The values of small leaves, and sums of the others."""
    results[name] = numbers = []
    for leaf in jax.tree.leaves(values):
        array = leaf.todense() if scipy.sparse.issparse(leaf) else leaf
        array = np.nan_to_num(np.asarray(array))
        parts = (array.real, array.imag) if np.iscomplexobj(array) else (array.astype(float),)
        for part in parts:
            small = part.size < 9
            numbers.append(part.ravel().tolist() if small else [part.sum(), abs(part).sum()])


# Spaces
key = jax.random.key(1)
chain = nk.graph.Chain(4)
spin = nk.hilbert.Spin(0.5, 4)
spaces = {
    "spin": spin,
    "magnetized": nk.hilbert.Spin(0.5, 4, total_sz=0),
    "one": nk.hilbert.Spin(1, 3),
    "fock": nk.hilbert.Fock(2, 3),
    "particles": nk.hilbert.Fock(3, 3, n_particles=4),
    "qubit": nk.hilbert.Qubit(4),
    "fermions": nk.hilbert.SpinOrbitalFermions(3, 0.5, n_fermions_per_spin=(1, 1)),
    "product": nk.hilbert.Spin(0.5, 2) * nk.hilbert.Fock(2, 2),
    "doubled": nk.hilbert.DoubledHilbert(nk.hilbert.Spin(0.5, 2)),
}
for name, space in spaces.items():
    states = space.all_states()
    samples = space.random_state(key, 5)
    record(f"space, {name}", states, space.states_to_numbers(states), samples)
flipped, old = nk.hilbert.random.flip_state(spin, key, spin.all_states()[:3], jnp.array([0, 1, 2]))
record("flipped", flipped, old)

# Graphs and their symmetries
graphs = {
    "chain": chain, "square": nk.graph.Square(3), "hypercube": nk.graph.Hypercube(2, 3),
    "triangular": nk.graph.Triangular([2, 2]), "honeycomb": nk.graph.Honeycomb([2, 2]),
    "kagome": nk.graph.Kagome([2, 2]), "grid": nk.graph.Grid([2, 3], pbc=False),
}  # fmt: skip
for name, graph in graphs.items():
    record(f"graph, {name}", np.sort(graph.edges(), axis=None), graph.n_nodes, graph.distances())
record("translations", np.asarray(graphs["square"].translation_group()),
       graphs["square"].translation_group().character_table())  # fmt: skip
record("points", np.asarray(nk.utils.group.planar.C(4).product_table))
record("space group", graphs["square"].space_group().product_table)

# Operators
sz, sx = nk.operator.spin.sigmaz, nk.operator.spin.sigmax
operators = {
    "ising": nk.operator.IsingJax(spin, chain, h=0.7),
    "ising, numba": nk.operator.IsingNumba(spin, chain, h=0.7),
    "heisenberg": nk.operator.Heisenberg(spin, chain),
    "hubbard": nk.operator.BoseHubbardJax(spaces["particles"], nk.graph.Chain(3), U=2.0),
    "local": (sz(spin, 0) @ sz(spin, 1) + 0.3 * sx(spin, 2)).to_jax_operator(),
    "strings": nk.operator.PauliStringsJax(["XXII", "IZZI", "YIIY"], [0.5, 1.0, -0.3]),
    "graph": nk.operator.GraphOperator(spin, chain, bond_ops=[np.diag([1.0, -1.0, -1.0, 1.0])]),
    "fermions": nk.operator.FermiHubbardJax(
        spaces["fermions"], t=1.0, U=2.0, graph=nk.graph.Chain(3)
    ),
}
for name, operator in operators.items():
    dense = operator.to_dense()
    record(f"operator, {name}", dense, operator.hilbert.n_states, operator.is_hermitian)
    if isinstance(operator, nk.operator.DiscreteJaxOperator):
        connected = jax.jit(lambda o, x: o.get_conn_padded(x))
        record(
            f"operator, {name}: connected", connected(operator, operator.hilbert.all_states()[:3])
        )
ising = operators["ising"]
record("operator, sums", (ising + 2.0 * operators["local"]).to_dense(),
       nk.operator.Squared(operators["local"]).to_dense(), ising.to_sparse())  # fmt: skip
record("exact", nk.exact.lanczos_ed(ising), nk.exact.full_ed(operators["strings"]))
create = nk.operator.fermion.create
record("fermion", (create(spaces["fermions"], 0, sz=1) @ create(
    spaces["fermions"], 0, sz=1).H).to_dense())  # fmt: skip

# Models: values and gradients
sigma = spin.random_state(key, 3)
models = {
    "RBM": nk.models.RBM(alpha=1, param_dtype=complex),
    "RBMModPhase": nk.models.RBMModPhase(alpha=1),
    "RBMMultiVal": nk.models.RBMMultiVal(n_classes=2, alpha=1),
    "RBMSymm": nk.models.RBMSymm(symmetries=chain.translation_group(), alpha=1),
    "GCNN": nk.models.GCNN(symmetries=chain, layers=2, features=2, mode="fft"),
    "GCNN, irreps": nk.models.GCNN(symmetries=chain, layers=2, features=2, mode="irreps"),
    "Jastrow": nk.models.Jastrow(),
    "MLP": nk.models.MLP(hidden_dims=(5,), output_activation=nk.nn.log_cosh),
    "log": nk.models.LogStateVector(spin),
    "MPSOpen": nk.models.tensor_networks.MPSOpen(hilbert=spin, bond_dim=2),
    "MPSPeriodic": nk.models.tensor_networks.MPSPeriodic(hilbert=spin, bond_dim=2, symperiod=2),
    "ARNNDense": nk.models.ARNNDense(hilbert=spin, layers=2, features=3),
    "ARNNConv1D": nk.models.ARNNConv1D(hilbert=spin, layers=2, features=2, kernel_size=2),
    "FastARNNDense": nk.models.FastARNNDense(hilbert=spin, layers=2, features=3),
}  # fmt: skip
for name, model in models.items():
    inputs = (sigma + 1) // 2 if name == "RBMMultiVal" else sigma
    variables = model.init(jax.random.key(3), inputs)
    parameters = variables.pop("params") if isinstance(variables, dict) else variables["params"]
    apply = lambda p, v=variables, m=model, s=inputs: m.apply({"params": p, **v}, s).sum().real
    record(f"model, {name}", model.apply({"params": parameters, **variables}, inputs),
           jax.jit(jax.grad(apply))(parameters))  # fmt: skip
slater = nk.models.Slater2nd(spaces["fermions"])
record("model, Slater", slater.init_with_output(key, spaces["fermions"].random_state(key, 2))[0])

# Samplers
rbm = models["RBM"]
parameters = rbm.init(jax.random.key(3), sigma)
graph_of_clusters = {"graph": chain}
samplers = {
    "exact": nk.sampler.ExactSampler(spin),
    "local": nk.sampler.MetropolisLocal(spin, n_chains=4),
    "exchange": nk.sampler.MetropolisExchange(spin, graph=chain, n_chains=4),
    "hamiltonian": nk.sampler.MetropolisHamiltonian(spin, hamiltonian=ising, n_chains=4),
    "tempered": nk.sampler.ParallelTemperingLocal(spin, n_replicas=4, n_chains=2),
    "multiple": nk.sampler.MetropolisSampler(
        spin,
        nk.sampler.rules.MultipleRules(
            [nk.sampler.rules.LocalRule(), nk.sampler.rules.GlobalSpinFlipRule()], [0.7, 0.3]
        ),
        n_chains=4,
    ),
}
for name, sampler in samplers.items():
    state = sampler.init_state(rbm, parameters, seed=5)
    state = sampler.reset(rbm, parameters, state=state)
    samples, state = sampler.sample(rbm, parameters, state=state, chain_length=6)
    record(f"sampler, {name}", samples)
ar = nk.sampler.ARDirectSampler(spin)
dense = models["ARNNDense"]
record("sampler, autoregressive", ar.sample(dense, dense.init(key, sigma), chain_length=3,
       state=ar.init_state(dense, dense.init(key, sigma), seed=3))[0])  # fmt: skip

# States: expectation values, gradients, geometric tensors
state = nk.vqs.MCState(nk.sampler.ExactSampler(spin), rbm, n_samples=64, seed=1, sampler_seed=2)
full = nk.vqs.FullSumState(spin, rbm, seed=1)
for name, variational in (("sampled", state), ("summed", full)):
    statistics, gradient = variational.expect_and_grad(ising)
    record(f"state, {name}", statistics.mean, statistics.variance, gradient)
record("state, vector", full.to_array(), state.to_array())
tensors = {
    "dense": nk.optimizer.qgt.QGTJacobianDense(diag_shift=0.01, holomorphic=True),
    "tree": nk.optimizer.qgt.QGTJacobianPyTree(diag_shift=0.01, holomorphic=True),
    "lazy": nk.optimizer.qgt.QGTOnTheFly(diag_shift=0.01, holomorphic=True),
}
for name, tensor in tensors.items():
    geometric = state.quantum_geometric_tensor(tensor)
    record(
        f"tensor, {name}",
        geometric.to_dense(),
        geometric @ gradient,
        geometric.solve(
            nk.optimizer.solver.cholesky if name != "lazy" else jax.scipy.sparse.linalg.cg, gradient
        )[0],
    )
chunked = nk.vqs.MCState(nk.sampler.ExactSampler(spin), rbm, n_samples=64, seed=1, sampler_seed=2,
                         chunk_size=16)  # fmt: skip
record("state, in chunks", chunked.expect(ising).mean)
pair = nk.hilbert.Spin(0.5, 2)
liouvillian = nk.operator.LocalLiouvillian(
    nk.operator.spin.sigmax(pair, 0), [nk.operator.spin.sigmam(pair, 0)]
)
record("superoperator", liouvillian.to_dense())

# Drivers
for name, optimizer in {
    "sgd": nk.optimizer.Sgd(0.05), "adam": nk.optimizer.Adam(0.02),
    "momentum": nk.optimizer.Momentum(0.02), "rms": nk.optimizer.RmsProp(0.01),
}.items():  # fmt: skip
    full.init_parameters(seed=4)
    driver = nk.driver.VMC(ising, optimizer, variational_state=full)
    log = nk.logging.RuntimeLog()
    driver.run(4, out=log, show_progress=False)
    record(f"driver, {name}", log.data["Energy"]["Mean"].real)
driver = nk.driver.VMC(
    ising,
    nk.optimizer.Sgd(0.05),
    variational_state=state,
    preconditioner=nk.optimizer.SR(diag_shift=0.05, holomorphic=True),
)
log = nk.logging.RuntimeLog()
driver.run(3, out=log, show_progress=False)
record("driver, natural gradients", log.data["Energy"]["Mean"].real)
evolved = nk.vqs.FullSumState(spin, rbm, seed=1)
dynamics = nkx.TDVP(
    ising,
    evolved,
    nkx.dynamics.RK4(dt=0.05),
    propagation_type="imag",
    qgt=nk.optimizer.qgt.QGTJacobianDense(holomorphic=True, diag_shift=1e-2),
)
dynamics.run(0.1, show_progress=False)
record("dynamics", evolved.expect(ising).mean)

# Mathematics
tree = {"a": jnp.array([1.0 + 1j, 2.0]), "b": jnp.array([0.5])}
record(
    "trees",
    nk.jax.tree_dot(tree, tree),
    nk.jax.tree_conj(tree),
    nk.jax.tree_ax(2.0, tree),
    nk.jax.tree_axpy(0.5, tree, tree),
    nk.jax.tree_size(tree),
    nk.jax.tree_to_real(tree)[0],
)
f = lambda x: jnp.sum(x**2 * (1 + 0.5j))
record("derivatives", nk.jax.vjp(f, tree["a"])[1](1.0 + 0j), nk.jax.logsumexp_cplx(tree["a"]),
       nk.jax.logdet_cmplx(jnp.array([[1.0, 0.2j], [0.3, 2.0]])))  # fmt: skip
for mode in ("real", "complex", "holomorphic"):
    record(f"jacobian, {mode}", nk.jax.jacobian(rbm.apply, parameters["params"], sigma, mode=mode))
record("mapped in chunks", nk.jax.vmap_chunked(lambda x: jnp.sin(x).sum(), chunk_size=2)(sigma))
chains = jax.random.normal(key, (4, 32))
stats = nk.stats.statistics(chains)
record("statistics", stats.mean, stats.error_of_mean, stats.variance, stats.R_hat, stats.tau_corr)
record(
    "activations", nk.nn.log_cosh(tree["a"]), nk.nn.reim_selu(tree["a"]), nk.nn.reim_relu(tree["a"])
)
record("encoding", nk.nn.binary_encoding(spin, sigma))
print(json.dumps(results))
