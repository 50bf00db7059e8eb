"""penzai: named axes, a transformer block, selectors, and a trained model."""

import json

import jax
import jax.numpy as jnp
from penzai import pz

x = pz.nx.wrap(jnp.sin(jnp.arange(24.0)).reshape(2, 3, 4)).tag("batch", "seq", "features")
mlp = pz.nn.Sequential(
    [
        pz.nn.Affine.from_config(
            name="first", init_base_rng=jax.random.key(0),
            input_axes={"features": 4}, output_axes={"hidden": 8},
        ),
        pz.nn.Elementwise(jax.nn.gelu),
        pz.nn.Linear.from_config(
            name="second", init_base_rng=jax.random.key(1),
            input_axes={"hidden": 8}, output_axes={"features": 4},
        ),
    ]
)  # fmt: skip
model = pz.nn.Residual(mlp)
unbound, params = pz.unbind_params(model, freeze=True)


@jax.jit
def loss(params):
    out = pz.bind_variables(unbound, params)(x)
    return jnp.mean((out.untag("batch", "seq", "features").unwrap() - 1.0) ** 2)


losses = []
for _ in range(10):
    value, grads = jax.value_and_grad(loss)(params)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    losses.append(float(value))
named = pz.nx.nmap(jnp.sum)(x.untag("features"))
halved = pz.select(x).at_instances_of(jax.Array).apply(lambda a: a / 2)
print(
    json.dumps(
        {
            "losses": losses,
            "sums": named.unwrap("batch", "seq").tolist(),
            "axes": dict(named.named_shape),
            "halved": float(pz.nx.nmap(jnp.sum)(halved.untag("batch", "seq", "features")).unwrap()),
            "parameters": [p.label for p in params],
        }
    )
)
