"""Flax on eight CPU devices: partitioned parameters of linen, sharded modules of nnx, and optax."""

import functools
import json

import flax.linen as linen
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from flax.linen import partitioning
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
RULES = (("batch", "data"), ("embed", None), ("hidden", "model"), ("heads", "model"))


def mesh_of(kind):
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(kind,) * 2)


def described(tree):
    """Sum, spec and shape of the first part of each array, by path."""
    return {
        jax.tree_util.keystr(path): [
            float(jnp.sum(jnp.abs(x.astype(jnp.float32)))),
            str(getattr(x.sharding, "spec", None)),
            list(x.addressable_shards[0].data.shape),
        ]
        for path, x in jax.tree_util.tree_leaves_with_path(tree)
        if isinstance(x, jax.Array) and not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    }


class Block(linen.Module):
    """Feed-forward network with logical axes."""

    width: int

    @linen.compact
    def __call__(self, x):
        init = linen.initializers.lecun_normal()
        x = linen.with_logical_constraint(x, ("batch", "embed"))
        up = linen.with_logical_partitioning(init, ("embed", "hidden"))
        down = linen.with_logical_partitioning(init, ("hidden", "embed"))
        h = linen.gelu(linen.Dense(self.width, kernel_init=up, use_bias=False)(x))
        h = linen.with_logical_constraint(h, ("batch", "hidden"))
        return x + linen.Dense(x.shape[-1], kernel_init=down)(h)


class Stack(linen.Module):
    """Blocks of which the parameters have a further axis, by scan, with remat."""

    @linen.compact
    def __call__(self, x):
        blocks = linen.scan(
            linen.remat(lambda module, x, _: (module(x), None)),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=3,
            metadata_params={linen.PARTITION_NAME: "layers"},
        )
        x, _ = blocks(Block(32), x, None)
        w = self.param(
            "out",
            linen.with_partitioning(linen.initializers.normal(), ("data", None)),
            (x.shape[-1], 4),
        )
        return x @ w


def with_linen(mesh):
    """A network initialised in place by the specs of its axes, and trained."""
    model, optimizer = Stack(), optax.adamw(1e-2)
    x = jax.device_put(jnp.sin(jnp.arange(8 * 16.0)).reshape(8, 16), NamedSharding(mesh, P("data")))

    def create(key):
        variables = model.init(key, x)
        return {"params": variables, "opt": optimizer.init(variables)}

    with mesh, linen.logical_axis_rules(RULES):
        logical = linen.get_partition_spec(jax.eval_shape(create, jax.random.key(0)))
        shardings = linen.logical_to_mesh_sharding(logical, mesh, RULES)
        state = jax.jit(create, out_shardings=shardings)(jax.random.key(0))

        @jax.jit
        def step(state):
            def loss(variables):
                return jnp.mean((model.apply(variables, x) - 1.0) ** 2)

            value, grads = jax.value_and_grad(loss)(state["params"])
            updates, opt = optimizer.update(grads, state["opt"], state["params"])
            return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

        losses = []
        for _ in range(4):
            state, value = step(state)
            losses.append(float(value))
    specs = [str(s) for s in jax.tree.leaves(logical, is_leaf=lambda s: isinstance(s, P))]
    assert losses[-1] < losses[0], losses
    return {
        "losses": losses,
        "logical": specs,
        "state": described(linen.meta.unbox(state)),
        "axes": str(linen.logical_to_mesh_axes(("batch", None, "heads"), RULES)),
    }


class Older(linen.Module):
    """Parameters whose axes are in a collection beside them: ``param_with_axes``."""

    @linen.compact
    def __call__(self, x):
        w = partitioning.param_with_axes(
            "w", linen.initializers.normal(), (x.shape[-1], 6), axes=("embed", "hidden")
        )
        return partitioning.with_sharding_constraint(x @ w, ("batch", "hidden"))


def with_older_names(mesh):
    x = jnp.cos(jnp.arange(8 * 16.0)).reshape(8, 16)
    with mesh, partitioning.axis_rules(RULES):
        variables = jax.jit(Older().init)(jax.random.key(1), x)
        out = jax.jit(Older().apply)(variables, x)
        axes = partitioning.get_axis_names(variables["params_axes"])
    return {
        "out": float(jnp.sum(out)),
        "axes": str(jax.tree.leaves(axes, is_leaf=lambda s: isinstance(s, P))),
        "mesh axes": str(partitioning.logical_to_mesh_axes(("batch", "hidden"))),
        "parts": list(out.addressable_shards[0].data.shape),
    }


class Net(nnx.Module):
    def __init__(self, rngs):
        init = nnx.initializers.lecun_normal()
        across = nnx.with_partitioning(init, (None, "model"))
        # A bias before a batch norm has no gradient but rounding errors.
        self.up = nnx.Linear(16, 32, use_bias=False, rngs=rngs, kernel_init=across)
        self.down = nnx.Linear(
            32, 4, rngs=rngs, kernel_init=nnx.with_partitioning(init, ("model", None))
        )
        self.norm = nnx.BatchNorm(32, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x):
        h = self.dropout(nnx.relu(self.norm(self.up(x))))
        return self.down(h)


def with_nnx(mesh):
    """A module created sharded in jit, and trained with nnx.Optimizer."""
    with jax.set_mesh(mesh):

        @nnx.jit
        def create():
            model = Net(nnx.Rngs(0))
            state = nnx.state(model)
            specs = nnx.get_partition_spec(state)
            nnx.update(model, jax.lax.with_sharding_constraint(state, specs))
            return model

        model = create()
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
        x = jax.device_put(jnp.sin(jnp.arange(8 * 16.0)).reshape(8, 16), P("data"))
        y = jax.device_put(jnp.arange(8) % 4, P("data"))

        @nnx.jit
        def step(model, optimizer, x, y):
            def loss(model):
                scores = model(x)
                return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()

            value, grads = nnx.value_and_grad(loss)(model)
            optimizer.update(model, grads)
            return value

        losses = [float(step(model, optimizer, x, y)) for _ in range(5)]
        abstract = nnx.eval_shape(lambda: Net(nnx.Rngs(0)))
        specs = nnx.get_partition_spec(nnx.state(abstract, nnx.Param))
        named = nnx.get_named_sharding(nnx.state(abstract, nnx.Param), mesh)
        constrained = jax.jit(lambda v: jax.lax.with_sharding_constraint(v, P("data", "model")))(
            jnp.ones((8, 4))
        )
    assert losses[-1] < losses[0], losses
    return {
        "losses": losses,
        "params": described(nnx.to_pure_dict(nnx.state(model, nnx.Param))),
        "moments": described(nnx.to_pure_dict(nnx.state(optimizer, nnx.optimizer.OptState))),
        "specs": {k: str(v) for k, v in flat(nnx.to_pure_dict(specs))},
        "named": {k: str(v.spec) for k, v in flat(nnx.to_pure_dict(named))},
        "constrained": str(constrained.sharding.spec),
    }


def flat(tree):
    leaves = jax.tree_util.tree_leaves_with_path(
        tree, is_leaf=lambda s: isinstance(s, (P, NamedSharding))
    )
    return [(jax.tree_util.keystr(path), x) for path, x in leaves]


def with_vmap(mesh):
    """An ensemble: modules created and applied over an axis that is divided among devices."""
    with jax.set_mesh(mesh):

        @nnx.vmap(in_axes=0, out_axes=0)
        def create(rngs):
            return nnx.Linear(4, 3, rngs=rngs)

        @nnx.vmap(in_axes=(0, None), out_axes=0)
        def apply(model, x):
            return model(x)

        models = create(nnx.Rngs(0).fork(split=8))
        graph, state = nnx.split(models)
        state = jax.device_put(state, NamedSharding(mesh, P(("data", "model"))))
        out = nnx.jit(apply)(nnx.merge(graph, state), jnp.ones((2, 4)))
    return {
        "out": float(jnp.sum(jnp.abs(out))),
        "parts": list(out.addressable_shards[0].data.shape),
    }


def update(optimizer, params, state):
    grads = jax.tree.map(jnp.cos, params)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def with_optax(mesh):
    """Moments have the shardings of their parameters; the values are those of one device."""
    params = {"w": jnp.sin(jnp.arange(64.0)).reshape(16, 4), "b": jnp.ones(4)}
    specs = {"w": P("data", "model"), "b": P("model")}
    shardings = jax.tree.map(lambda s: NamedSharding(mesh, s), specs)
    result = {}
    for name in ("adamw", "lion", "adafactor", "sgd", "lamb", "shampoo"):
        make = getattr(optax, name, None)
        if make is None:
            continue
        optimizer = make(1e-2)

        step = jax.jit(functools.partial(update, optimizer))
        divided = jax.device_put(params, shardings)
        state = optimizer.init(divided)
        for _ in range(2):
            divided, state = step(divided, state)
        whole = step(params, optimizer.init(params))[0]
        result[name] = [
            described(divided), described(state), float(optax.tree.norm(whole)),
        ]  # fmt: skip
    return result


def main():
    auto = mesh_of(AxisType.Auto)
    print(
        json.dumps(
            {
                "linen": with_linen(auto),
                "older": with_older_names(auto),
                "nnx": with_nnx(auto),
                "vmap": with_vmap(auto),
                "optax": with_optax(auto),
            }
        )
    )


main()
