"""dynamiqs: closed and open evolution of a driven cavity."""

import json

import dynamiqs as dq
import jax
import jax.numpy as jnp

dq.set_precision("double")
dq.set_progress_meter(False)
n = 8
a = dq.destroy(n)
times = jnp.linspace(0.0, 1.0, 5)
H = dq.dag(a) @ a + 0.3 * (a + dq.dag(a))
closed = dq.sesolve(H, dq.coherent(n, 0.5), times, exp_ops=[dq.number(n)])
opened = dq.mesolve(H, [jnp.sqrt(0.2) * a], dq.coherent(n, 0.5), times, exp_ops=[dq.number(n)])


def final(drive):
    H = dq.dag(a) @ a + drive * (a + dq.dag(a))
    out = dq.sesolve(H, dq.basis(n, 0), times, exp_ops=[dq.number(n)])
    return out.expects[0, -1].real


print(
    json.dumps(
        {
            "closed": closed.expects.real.tolist(),
            "open": opened.expects.real.tolist(),
            "gradient": float(jax.grad(final)(0.3)),
            "purity": float(dq.purity(opened.states[-1])),
        }
    )
)
