"""e3nn: irreducible representations, tensor products, spherical harmonics, equivariance."""

import json

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

x = e3nn.normal("2x0e + 3x1o + 1x2e", jax.random.key(0), (4,))
y = e3nn.spherical_harmonics("0e + 1o + 2e", jax.random.normal(jax.random.key(1), (4, 3)), True)
product = e3nn.tensor_product(x, y, filter_ir_out=["0e", "1o", "2e"])
rotation = e3nn.rand_matrix(jax.random.key(2))
turned = e3nn.tensor_product(
    x.transform_by_matrix(rotation),
    y.transform_by_matrix(rotation),
    filter_ir_out=["0e", "1o", "2e"],
)
error = jnp.abs(turned.array - product.transform_by_matrix(rotation).array).max()
linear = e3nn.flax.Linear("4x0e + 2x1o")
weights = linear.init(jax.random.key(3), product)


@jax.jit
def loss(weights):
    out = e3nn.gate(
        e3nn.concatenate(
            [linear.apply(weights, product), e3nn.IrrepsArray("2x0e", product.array[:, :2])]
        )
    )
    return jnp.sum(e3nn.norm(out).array ** 2)


value, grads = jax.value_and_grad(loss)(weights)
legendre = e3nn.spherical_harmonics(
    "0e + 1o + 2e + 3o", y.array[:, 1:4], True, algorithm=("legendre", "dense")
)
coefficients = e3nn.normal("0e + 1o + 2e", jax.random.key(4))
grid = e3nn.to_s2grid(coefficients, 10, 9, quadrature="gausslegendre")
print(
    json.dumps(
        {
            "irreps": str(product.irreps),
            "product": product.array.sum(-1).tolist(),
            "equivariant": bool(error < 1e-4),
            "harmonics": y.array[0].tolist(),
            "legendre": legendre.array[0].tolist(),
            "grid": grid.grid_values.sum(0).tolist(),
            "from grid": e3nn.from_s2grid(grid, "0e + 1o + 2e").array.tolist(),
            "loss": float(value),
            "grads": [float(jnp.linalg.norm(g)) for g in jax.tree.leaves(grads)],
            "clebsch": float(jnp.abs(e3nn.clebsch_gordan(1, 1, 2)).sum()),
            "basis": e3nn.bessel(jnp.linspace(0.1, 1.0, 4), 3, 2.0).tolist(),
        }
    )
)
