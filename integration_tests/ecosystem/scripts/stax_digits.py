"""A small convolutional network of example_libraries, trained with momentum and Adam."""

import itertools
import json

import jax
import jax.numpy as jnp
from jax import grad, jit, random
from jax.example_libraries import optimizers, stax
from sklearn.datasets import load_digits

data = load_digits()
images = jnp.asarray(data.images[:512, :, :, None] / 16.0, jnp.float32)
targets = jax.nn.one_hot(data.target[:512], 10)

init_network, network = stax.serial(
    stax.Conv(8, (3, 3), padding="SAME"),
    stax.Relu,
    stax.MaxPool((2, 2), strides=(2, 2)),
    stax.FanOut(2),
    stax.parallel(stax.Conv(8, (1, 1)), stax.Conv(8, (3, 3), padding="SAME")),
    stax.FanInSum,
    stax.Flatten,
    stax.Dense(10),
    stax.LogSoftmax,
)


def loss(params, batch):
    inputs, targets = batch
    return -jnp.mean(jnp.sum(network(params, inputs) * targets, axis=1))


def train(optimizer, epochs):
    init, update, get_params = optimizer

    @jit
    def step(i, state, batch):
        return update(i, grad(loss)(get_params(state), batch), state)

    _, params = init_network(random.PRNGKey(0), (-1, 8, 8, 1))
    state = init(params)
    counter = itertools.count()
    losses = []
    for _ in range(epochs):
        for start in range(0, len(images), 64):
            batch = images[start : start + 64], targets[start : start + 64]
            state = step(next(counter), state, batch)
        losses.append(float(jit(loss)(get_params(state), (images, targets))))
    assert losses[-1] < losses[0]
    norm = float(optimizers.l2_norm(get_params(state)))
    return {"losses": losses, "norm": norm}


decay = optimizers.exponential_decay(0.05, decay_steps=50, decay_rate=0.9)
print(
    json.dumps(
        {
            "momentum": train(optimizers.momentum(decay, mass=0.9), 3),
            "adam": train(optimizers.adam(1e-2), 3),
        }
    )
)
