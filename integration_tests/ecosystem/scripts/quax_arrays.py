"""quax: arrays of one's own kind under functions written for plain arrays."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import quax
from quax.examples import lora


class Unitful(quax.ArrayValue):
    array: jax.Array
    exponent: int = eqx.field(static=True)

    def aval(self):
        return jax.core.ShapedArray(self.array.shape, self.array.dtype)

    def materialise(self):
        raise ValueError("units cannot be dropped")


@quax.register(jax.lax.mul_p)
def _(x: Unitful, y: Unitful, **params):
    return Unitful(x.array * y.array, x.exponent + y.exponent)


@quax.register(jax.lax.mul_p)
def _(x: Unitful, y: jax.Array, **params):
    return Unitful(x.array * y, x.exponent)


@quax.register(jax.lax.add_p)
def _(x: Unitful, y: Unitful, **params):
    if x.exponent != y.exponent:
        raise ValueError("units differ")
    return Unitful(x.array + y.array, x.exponent)


metres = Unitful(jnp.array([1.0, 2.0]), 1)
area = jax.jit(quax.quaxify(lambda a, b: a * b + b * a))(metres, metres)
linear = eqx.nn.Linear(4, 3, key=jax.random.key(0))
adapted = lora.loraify(linear, rank=2, key=jax.random.key(1))


@eqx.filter_jit
def loss(model, x):
    return jnp.sum(quax.quaxify(model)(x) ** 2)


x = jnp.arange(4.0)
value = loss(adapted, x)
grads = eqx.filter_grad(loss)(adapted, x)
norms = [float(jnp.linalg.norm(g)) for g in jax.tree.leaves(grads)]
scanned = quax.quaxify(
    lambda w, x: jax.lax.scan(lambda c, _: (jnp.tanh(w @ c), c.sum()), x, None, 3)
)(lora.LoraArray(jnp.eye(4), rank=1, scale=0.1, key=jax.random.key(2)), x)
print(
    json.dumps(
        {
            "area": [area.array.tolist(), area.exponent],
            "loss": float(value),
            "norms": norms,
            "scanned": [scanned[0].tolist(), scanned[1].tolist()],
        }
    )
)
