"""Train a network on scikit-learn's digits with Optax: Adam, a schedule, clipping."""

import json

import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits

EPOCHS, BATCH = 4, 64


def initial_params(key, widths):
    keys = jax.random.split(key, len(widths) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) * jnp.sqrt(2.0 / m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, widths[:-1], widths[1:])
    ]


def apply(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params, images, digits):
    scores = apply(params, images)
    return optax.softmax_cross_entropy_with_integer_labels(scores, digits).mean()


data = load_digits()
images = jnp.asarray(data.data / 16.0, jnp.float32)
digits = jnp.asarray(data.target)
steps = len(digits) // BATCH

schedule = optax.warmup_cosine_decay_schedule(1e-4, 5e-3, steps, EPOCHS * steps, 1e-4)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))


@jax.jit
def step(params, state, images, digits):
    value, grads = jax.value_and_grad(loss)(params, images, digits)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


key = jax.random.PRNGKey(0)
params = initial_params(key, (64, 48, 10))
state = optimizer.init(params)
losses = []
for _ in range(EPOCHS):
    key, subkey = jax.random.split(key)
    order = jax.random.permutation(subkey, len(digits))
    for i in range(steps):
        batch = order[i * BATCH : (i + 1) * BATCH]
        params, state, value = step(params, state, images[batch], digits[batch])
        losses.append(value)

accuracy = jnp.mean(jnp.argmax(apply(params, images), axis=-1) == digits)
assert accuracy > 0.9, accuracy
print(
    json.dumps(
        {
            "losses": [float(x) for x in losses[:: steps // 2]],
            "norms": [float(optax.tree.norm(layer)) for layer in params],
            "last rate": float(schedule(len(losses))),
            "read correctly": round(float(accuracy), 2),
        }
    )
)
