"""Flax: a convolutional network of linen with batch norm and dropout, and one of nnx."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import nnx, serialization, traverse_util
from flax.training import train_state

x = jnp.sin(jnp.arange(16 * 8 * 8.0)).reshape(16, 8, 8, 1)
y = jnp.arange(16) % 3


class Convolutional(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(6, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.max_pool(nn.gelu(x), (2, 2), (2, 2)).reshape(len(x), -1)
        x = nn.Dropout(0.3, deterministic=not train)(x)
        return nn.Dense(3)(nn.LayerNorm()(x))


class State(train_state.TrainState):
    moments: dict


def loss_of(scores):
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()


model = Convolutional()
variables = model.init(jax.random.key(0), x, train=False)
state = State.create(
    apply_fn=model.apply, params=variables["params"], tx=optax.adam(1e-2),
    moments=variables["batch_stats"],
)  # fmt: skip


@jax.jit
def step(state, key):
    def loss(params):
        scores, new = state.apply_fn(
            {"params": params, "batch_stats": state.moments}, x, train=True,
            mutable=["batch_stats"], rngs={"dropout": key},
        )  # fmt: skip
        return loss_of(scores), new["batch_stats"]

    (value, moments), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, moments=moments), value


losses = []
for i in range(20):
    state, value = step(state, jax.random.key(i))
    losses.append(float(value))
stored = serialization.from_bytes(variables, serialization.to_bytes(variables))
attention = nn.MultiHeadDotProductAttention(2)
tokens = jnp.cos(jnp.arange(2 * 5 * 8.0)).reshape(2, 5, 8)
attended, _ = attention.init_with_output(jax.random.key(1), tokens)
carry, outputs = nn.RNN(nn.LSTMCell(4), return_carry=True).init_with_output(
    jax.random.key(2), tokens
)[0]


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(8, 16, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 16, decode=False, rngs=rngs)
        self.last = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.attention(nnx.silu(self.first(x))))[..., 0]


network = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(network, optax.sgd(0.1), wrt=nnx.Param)


@nnx.jit
def train(network, optimizer):
    value, grads = nnx.value_and_grad(lambda n: jnp.mean((n(tokens) - 1.0) ** 2))(network)
    optimizer.update(network, grads)
    return value


nnx_losses = [float(train(network, optimizer)) for _ in range(10)]
graph, params, rest = nnx.split(network, nnx.Param, ...)
print(
    json.dumps(
        {
            "losses": losses[::4],
            "stored": float(optax.tree.norm(jax.tree.map(jnp.asarray, stored))),
            "names": sorted("/".join(k) for k in traverse_util.flatten_dict(state.params)),
            "attended": attended.sum(-1).tolist(),
            "recurrent": [float(jnp.sum(outputs)), float(jnp.sum(carry[0]))],
            "nnx losses": nnx_losses,
            "nnx norm": float(optax.tree.norm(nnx.to_pure_dict(params))),
            "table": "Convolutional" in model.tabulate(jax.random.key(0), x, train=False),
        }
    )
)
