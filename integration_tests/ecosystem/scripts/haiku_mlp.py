"""Haiku: a network with layer norm and dropout, and one with state and a moving average."""

import json

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

data = load_digits()
images = np.float32(data.data[:640] / 16.0)
digits = data.target[:640]


def network(x, training):
    x = hk.Linear(32, w_init=hk.initializers.VarianceScaling(2.0))(x)
    x = jax.nn.relu(hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)(x))
    if training:
        x = hk.dropout(hk.next_rng_key(), 0.1, x)
    return hk.nets.MLP([24, 10], activation=jnp.tanh)(x)


model = hk.transform(network)
optimizer = optax.sgd(0.1, momentum=0.9)


def loss(params, key, x, y):
    scores = model.apply(params, key, x, training=True)
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()


@jax.jit
def step(params, state, key, x, y):
    value, grads = jax.value_and_grad(loss)(params, key, x, y)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


keys = hk.PRNGSequence(3)
params = model.init(next(keys), images[:1], training=True)
state = optimizer.init(params)
losses = []
for _ in range(3):
    for i in range(0, len(images), 64):
        params, state, value = step(
            params, state, next(keys), images[i : i + 64], digits[i : i + 64]
        )
        losses.append(float(value))
assert losses[-1] < 0.6 * losses[0], losses


def running(x):
    """A layer with batch norm, and a recurrent core unrolled over the first axis."""
    x = hk.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9)(x, is_training=True)
    core = hk.GRU(5)
    outputs, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
    return outputs


stateful = hk.transform_with_state(running)
sequence = images[:12].reshape(4, 3, 64)
weights, moments = stateful.init(jax.random.PRNGKey(1), sequence)
for _ in range(3):
    outputs, moments = jax.jit(stateful.apply)(weights, moments, None, sequence)
averages = {
    f"{module}/{name}": float(jnp.sum(jnp.abs(value)))
    for module, name, value in hk.data_structures.traverse(moments)
}
shapes = {f"{m}/{n}": list(v.shape) for m, n, v in hk.data_structures.traverse(params)}
print(
    json.dumps(
        {
            "losses": losses[::3],
            "norm": float(optax.tree.norm(params)),
            "shapes": shapes,
            "outputs": np.asarray(outputs[-1]).tolist(),
            "averages": averages,
        }
    )
)
