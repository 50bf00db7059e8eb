"""NetKet on eight CPU devices: the ground state of the transverse-field Ising chain."""

import json

import jax

jax.config.update("jax_num_cpu_devices", 8)

import netket as nk  # noqa: E402 - it asks for the devices

SITES = 8


def energy_of(state, hamiltonian, steps):
    """Energies during the optimization, and that of the last state."""
    driver = nk.driver.VMC(
        hamiltonian,
        nk.optimizer.Sgd(0.05),
        variational_state=state,
        preconditioner=nk.optimizer.SR(diag_shift=0.01),
    )
    log = nk.logging.RuntimeLog()
    driver.run(n_iter=steps, out=log, show_progress=False)
    means = log.data["Energy"]["Mean"].real.tolist()
    return [*means[:: steps // 5], float(state.expect(hamiltonian).mean.real)]


def main():
    """Samples of a restricted Boltzmann machine, sums over all states, and exact energies."""
    space = nk.hilbert.Spin(s=0.5, N=SITES)
    hamiltonian = nk.operator.IsingJax(hilbert=space, graph=nk.graph.Chain(SITES), h=1.0)
    model = nk.models.RBM(alpha=1, param_dtype=float)
    sampler = nk.sampler.MetropolisLocal(space, n_chains=16)
    sampled = nk.vqs.MCState(sampler, model, n_samples=512, seed=0, sampler_seed=1)
    summed = nk.vqs.FullSumState(space, model, seed=0)
    print(
        json.dumps(
            {
                "devices": len(jax.devices()),
                "sampled": energy_of(sampled, hamiltonian, 20),
                "summed": energy_of(summed, hamiltonian, 40),
                "exact": float(nk.exact.lanczos_ed(hamiltonian)[0]),
                "magnetization": float(
                    summed.expect(nk.operator.spin.sigmax(space, 0).to_jax_operator()).mean.real
                ),
            }
        )
    )


if __name__ == "__main__":
    main()
