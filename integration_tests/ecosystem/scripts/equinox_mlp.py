"""Equinox: filtered transformations, surgery on models, an ensemble, modules with state."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

key = jr.PRNGKey(0)
x = jnp.linspace(-1.0, 1.0, 64)[:, None]
y = jnp.sin(3.0 * x) + 0.5 * x**2


def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def training(optimizer):
    @eqx.filter_jit
    def step(model, state, x, y):
        value, grads = eqx.filter_value_and_grad(loss)(model, x, y)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, value

    return step


model = eqx.nn.MLP(1, 1, width_size=16, depth=2, activation=jax.nn.tanh, key=key)
optimizer = optax.adam(1e-2)
step = training(optimizer)
state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
losses = []
for _ in range(100):
    model, state, value = step(model, state, x, y)
    losses.append(float(value))
assert losses[-1] < 0.2 * losses[0], losses

# Only the last layer is trained; the rest of the tree is masked.
where = lambda m: (m.layers[-1].weight, m.layers[-1].bias)
mask = eqx.tree_at(where, jax.tree_util.tree_map(lambda _: False, model), (True, True))
trainable, frozen = eqx.partition(model, mask)


@eqx.filter_grad
def head_grad(trainable, frozen, x, y):
    return loss(eqx.combine(trainable, frozen), x, y)


head = head_grad(trainable, frozen, x, y)
halved = eqx.tree_at(where, model, replace_fn=lambda w: 0.5 * w)


@eqx.filter_vmap
def ensemble(key):
    return eqx.nn.MLP(1, 1, 4, 1, key=key)


members = ensemble(jr.split(key, 3))
outputs = eqx.filter_vmap(lambda m, x: jax.vmap(m)(x), in_axes=(eqx.if_array(0), None))(members, x)


class Network(eqx.Module):
    """A layer, a batch norm whose moments are state, and dropout."""

    linear: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    dropout: eqx.nn.Dropout
    activation: callable = eqx.field(static=True)

    def __init__(self, key):
        self.linear = eqx.nn.Linear(1, 6, key=key)
        self.norm = eqx.nn.BatchNorm(6, axis_name="batch", mode="batch")
        self.dropout = eqx.nn.Dropout(0.25)
        self.activation = jax.nn.softplus

    def __call__(self, x, state, key):
        x, state = self.norm(self.linear(x), state)
        return self.dropout(self.activation(x), key=key), state


@eqx.filter_jit
def apply(network, state, x, key):
    batched = jax.vmap(network, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))
    return batched(x, state, jr.split(key, len(x)))


network, moments = eqx.nn.make_with_state(Network)(key)
for i in range(3):
    z, moments = apply(network, moments, x, jr.fold_in(key, i))
inference = eqx.nn.inference_mode(network)
rest, _ = apply(inference, moments, x, key)


@eqx.filter_custom_vjp
def clipped(x, limit):
    return x * x


@clipped.def_fwd
def _(perturbed, x, limit):
    return x * x, None


@clipped.def_bwd
def _(residuals, g, perturbed, x, limit):
    return jnp.clip(2.0 * x * g, -limit, limit)


derivatives = jax.vmap(jax.grad(lambda x: clipped(x, 1.0)))(jnp.array([0.1, 2.0, -3.0]))
checked = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "must not be negative"))
try:
    checked(jnp.float32(-1.0))
    caught = False
except Exception as error:
    caught = "must not be negative" in str(error)
norms = [
    float(jnp.linalg.norm(a)) for a in jax.tree_util.tree_leaves(eqx.filter(model, eqx.is_array))
]
print(
    json.dumps(
        {
            "losses": losses[::20],
            "norms": norms,
            "loss of half the last layer": float(loss(halved, x, y)),
            "gradient of the last layer": np.asarray(head.layers[-1].weight).tolist(),
            "ensemble": np.asarray(outputs[:, ::16, 0]).tolist(),
            "dropped": np.asarray(z[::16]).tolist(),
            "inference": np.asarray(rest[::16]).tolist(),
            "clipped derivatives": derivatives.tolist(),
            "caught": caught,
        }
    )
)
