"""Equinox: every layer, the filtered transformations, state, serialization and checked errors."""

import io
import json
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from equinox import internal as eqxi

warnings.simplefilter("ignore")
key = jr.key(0)
keys = iter(jr.split(key, 100))
results = {}


def summary(tree):
    """Sums of the absolute values of the floating-point leaves."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
    return [float(jnp.abs(leaf).sum()) for leaf in leaves]


def record(name, value):
    results[name] = summary(value)


nn = eqx.nn
image, signal, volume = (jr.normal(next(keys), s) for s in ((3, 9, 9), (3, 9), (3, 5, 5, 5)))
vector, sequence = jr.normal(next(keys), (6,)), jr.normal(next(keys), (4, 6))
layers = {
    "linear": (nn.Linear(6, 3, key=next(keys)), vector),
    "linear of scalars": (nn.Linear("scalar", "scalar", key=next(keys)), vector[0]),
    "conv1d": (nn.Conv1d(3, 4, 3, stride=2, padding=1, key=next(keys)), signal),
    "conv2d": (nn.Conv2d(3, 6, 3, groups=3, dilation=2, key=next(keys)), image),
    "conv same": (
        nn.Conv2d(3, 4, 4, padding="SAME", padding_mode="REFLECT", key=next(keys)),
        image,
    ),
    "conv3d": (nn.Conv3d(3, 2, 2, key=next(keys)), volume),
    "conv1d transposed": (
        nn.ConvTranspose1d(3, 4, 3, stride=2, output_padding=1, key=next(keys)),
        signal,
    ),
    "conv2d transposed": (
        nn.ConvTranspose2d(3, 4, 3, stride=2, padding="SAME", key=next(keys)),
        image,
    ),
    "attention": (nn.MultiheadAttention(2, 6, key=next(keys)), (sequence,) * 3),
    "layer norm": (nn.LayerNorm(6), vector),
    "rms norm": (nn.RMSNorm(6), vector),
    "group norm": (nn.GroupNorm(3, 3), image),
    "embedding": (nn.Embedding(5, 3, key=next(keys)), jnp.array(2)),
    "rotary": (nn.RotaryPositionalEmbedding(6), sequence),
    "mlp": (nn.MLP(6, 2, 5, 2, activation=jax.nn.gelu, key=next(keys)), vector),
    "prelu": (nn.PReLU(), vector),
    "average": (nn.AvgPool2d(3, 2, padding=1), image),
    "maximum": (nn.MaxPool2d(3, 2, use_ceil=True), image),
    "maximum 1d": (nn.MaxPool1d(2), signal),
    "average 3d": (nn.AvgPool3d(2), volume),
    "adaptive": (nn.AdaptiveAvgPool2d((2, 4)), image),
    "adaptive maximum": (nn.AdaptiveMaxPool1d(4), signal),
    "weight norm": (nn.WeightNorm(nn.Linear(6, 3, key=next(keys)), "weight"), vector),
    "dropout": (nn.Dropout(0.5, inference=True), vector),
    "sequential": (
        nn.Sequential([nn.Linear(6, 4, key=next(keys)), nn.Lambda(jax.nn.relu), nn.Identity()]),
        vector,
    ),
}
for name, (layer, x) in layers.items():
    xs = x if isinstance(x, tuple) else (x,)

    @eqx.filter_value_and_grad
    def loss(layer, xs=xs):
        return jnp.sum(jnp.sin(layer(*xs)))

    record(name, (eqx.filter_jit(layer)(*xs), loss(layer)))
    mapped = eqx.filter_vmap(layer, in_axes=0)(*[jnp.stack([x, 2 * x]) for x in xs])
    record(f"{name}, mapped", mapped)

gru, lstm = nn.GRUCell(6, 4, key=next(keys)), nn.LSTMCell(6, 4, key=next(keys))
record("gru", jax.lax.scan(lambda h, x: (gru(x, h), h), jnp.zeros(4), sequence))
record("lstm", jax.lax.scan(lambda h, x: (lstm(x, h), h[0]), (jnp.zeros(4),) * 2, sequence))
record("dropout, random", nn.Dropout(0.5)(vector, key=next(keys)))

# Layers with state
for mode in ("ema", "batch"):
    norm, state = nn.make_with_state(nn.BatchNorm)(3, axis_name="batch", mode=mode)
    batch = jr.normal(next(keys), (8, 3, 4))
    out, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
        batch, state
    )
    record(f"batch norm {mode}", (out, state))
    record(f"batch norm {mode}, inference", nn.inference_mode(norm)(batch[0], state)[0])
spectral, state = nn.make_with_state(nn.SpectralNorm)(
    nn.Linear(6, 3, key=next(keys)), "weight", key=next(keys)
)
record("spectral norm", spectral(vector, state)[0])


class Counter(eqx.Module):
    index: nn.StateIndex
    layer: eqx.Module

    def __init__(self, key):
        self.index = nn.StateIndex(jnp.array(0.0))
        self.layer = nn.Linear(6, 6, key=key)

    def __call__(self, x, state):
        count = state.get(self.index) + 1
        return self.layer(x) * count, state.set(self.index, count)


counter, state = nn.make_with_state(Counter)(next(keys))
for _ in range(3):
    out, state = eqx.filter_jit(counter)(vector, state)
record("counter", (out, state.get(counter.index)))

# Shared layers
model = nn.Shared(
    (nn.Embedding(5, 6, key=next(keys)), nn.Linear(6, 5, key=next(keys))),
    where=lambda pair: pair[1].weight,
    get=lambda pair: pair[0].weight,
)


@eqx.filter_grad
def shared_loss(shared):
    embedding, linear = shared()
    return jnp.sum(linear(embedding(1)) ** 2)


record("shared", shared_loss(model))

# Filtered transformations
mlp = layers["mlp"][0]


def scalar(model, x):
    return jnp.sum(model(x) ** 2)


record(
    "jvp", eqx.filter_jvp(scalar, (mlp, vector), (eqx.filter(mlp, eqx.is_inexact_array), vector))
)
out, pull = eqx.filter_vjp(scalar, mlp, vector)
record("vjp", pull(jnp.array(2.0)))
record("hessian", eqx.filter_hessian(lambda x: scalar(mlp, x))(vector))
record("jacfwd", eqx.filter_jacfwd(mlp)(vector))
record("jacrev", eqx.filter_jacrev(mlp)(vector))
record("checkpoint", eqx.filter_grad(eqx.filter_checkpoint(scalar))(mlp, vector))
record("closure", eqx.filter_closure_convert(lambda x: scalar(mlp, x), vector)(vector))
shape = eqx.filter_eval_shape(mlp, vector)
results["eval_shape"] = [list(shape.shape), str(shape.dtype)]
record(
    "callback",
    eqx.filter_jit(lambda x: eqx.filter_pure_callback(np.sort, x, result_shape_dtypes=x))(vector),
)
ensemble = eqx.filter_vmap(lambda key: nn.MLP(6, 2, 5, 1, key=key))(jr.split(next(keys), 3))
record(
    "ensemble",
    eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(ensemble, vector),
)


@eqx.filter_custom_vjp
def clipped(x, limit):
    return x * 1.0


@clipped.def_fwd
def _(perturbed, x, limit):
    return x * 1.0, None


@clipped.def_bwd
def _(residuals, g, perturbed, x, limit):
    return jnp.clip(g, -limit, limit)


record("custom vjp", eqx.filter_grad(lambda x: jnp.sum(clipped(x, 0.5) ** 2))(vector))


@eqx.filter_custom_jvp
def doubled(x, *, scale):
    return x * 2


@doubled.def_jvp
def _(primals, tangents, *, scale):
    (x,), (t,) = primals, tangents
    return doubled(x, scale=scale), t * scale


record("custom jvp", eqx.filter_grad(lambda x: jnp.sum(doubled(x, scale=3.0)))(vector))

# Trees
new = eqx.tree_at(lambda m: m.layers[0].bias, mlp, replace_fn=lambda b: b + 1)
record("tree_at", new(vector))
results["tree_equal"] = [bool(eqx.tree_equal(mlp, mlp)), bool(eqx.tree_equal(mlp, new))]
results["pformat"] = eqx.tree_pformat(layers["linear"][0])
arrays, rest = eqx.partition(mlp, eqx.is_array)
record("combine", eqx.combine(arrays, rest)(vector))
file = io.BytesIO()
eqx.tree_serialise_leaves(file, mlp)
file.seek(0)
fresh = nn.MLP(6, 2, 5, 2, activation=jax.nn.gelu, key=next(keys))
results["serialised"] = bool(eqx.tree_equal(eqx.tree_deserialise_leaves(file, fresh), mlp))
updated = eqx.apply_updates(mlp, jax.tree.map(lambda x: 0.1 * x if eqx.is_array(x) else None, mlp))
record("apply_updates", updated)


# Errors at run time
def checked(x):
    return eqx.error_if(x, x < 0, "negative values")


record("error_if", eqx.filter_jit(checked)(jnp.abs(vector)))
try:
    jax.block_until_ready(eqx.filter_jit(checked)(-jnp.abs(vector)))
    results["raised"] = "nothing"
except Exception as error:
    results["raised"] = [isinstance(error, RuntimeError), "negative values" in str(error)]

# Loops
for kind in ("lax", "checkpointed", "bounded"):
    options = {"max_steps": 8} if kind != "lax" else {}

    def power(x, kind=kind, options=options):
        def body(carry):
            i, y = carry
            return i + 1, y * x

        return eqxi.while_loop(lambda c: c[0] < 5, body, (0, x), kind=kind, **options)[1]

    record(f"while_loop {kind}", power(vector))
    if kind != "lax":
        record(f"gradient of while_loop {kind}", jax.grad(lambda x: jnp.sum(power(x)))(vector))
record(
    "scan",
    jax.grad(
        lambda x: jnp.sum(
            eqxi.scan(lambda c, y: (c * y, c), x, sequence, kind="checkpointed", checkpoints=2)[0]
        )
    )(vector),
)


class Colour(eqx.Enumeration):
    red = "a warm colour"
    blue = "a cold colour"


results["enumeration"] = [bool(Colour.red == Colour.red), bool(Colour.red == Colour.blue)]
traced = eqx.filter_jit(lambda c: Colour.where(jnp.array(False), c, Colour.blue))(Colour.red)
results["enumeration, traced"] = [bool(traced == Colour.blue), Colour[traced]]


class Base(eqx.Module, strict=True):
    weight: eqx.AbstractVar[jax.Array]


class Concrete(Base, strict=True):
    weight: jax.Array
    static: int = eqx.field(static=True, default=3)
    converted: jax.Array = eqx.field(converter=jnp.asarray, default=1.0)

    def __check_init__(self):
        if self.weight.ndim != 1:
            raise ValueError("one axis")


record("module", Concrete(vector, 3, 2))
try:
    Concrete(sequence)
except ValueError as error:
    results["check_init"] = str(error)
try:
    Concrete(vector).weight = 1
except Exception as error:
    results["frozen"] = type(error).__name__
counted = eqx.debug.assert_max_traces(lambda x: x * 2, max_traces=1)
record("traces", eqx.filter_jit(counted)(vector))
print(json.dumps(results))
