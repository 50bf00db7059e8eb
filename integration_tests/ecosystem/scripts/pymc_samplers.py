"""PyMC's samplers on jax: the compiled density and its gradient, and NUTS of NumPyro."""

import json

import numpy as np
import pymc as pm
from pymc.sampling.jax import get_jaxified_logp, sample_numpyro_nuts

x = np.linspace(-1.0, 1.0, 20)
with pm.Model() as model:
    a = pm.Normal("a", 0.0, 1.0)
    b = pm.Normal("b", 0.0, 2.0)
    s = pm.HalfNormal("s", 1.0)
    pm.Normal("y", a + b * x, s, observed=0.5 + 2.0 * x)
    density = get_jaxified_logp(model)
    import jax

    point = [np.array(0.1), np.array(1.5), np.array(-0.3)]
    value, grads = jax.value_and_grad(density)(point)
    trace = sample_numpyro_nuts(
        draws=20,
        tune=20,
        chains=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
print(
    json.dumps(
        {
            "density": float(value),
            "gradient": [float(g) for g in grads],
            "near": bool(abs(float(trace["posterior"]["b"].mean()) - 2.0) < 0.5),
            "shape": list(trace["posterior"]["a"].shape),
        }
    )
)
