"""Checkpoints of orbax on eight CPU devices: saved on one mesh, restored on others."""

import json
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from orbax.checkpoint.experimental import v1

jax.config.update("jax_num_cpu_devices", 8)


def mesh_of(shape):
    return Mesh(np.array(jax.devices()).reshape(shape), ("data", "model"))


def parameters(mesh):
    w = jnp.sin(jnp.arange(16 * 12, dtype=jnp.float32)).reshape(16, 12)
    b = jnp.cos(jnp.arange(12)).astype(jnp.bfloat16)
    return {
        "layer": {
            "w": jax.device_put(w, NamedSharding(mesh, P("data", "model"))),
            "b": jax.device_put(b, NamedSharding(mesh, P("model"))),
        },
        "step": jax.device_put(jnp.int32(7), NamedSharding(mesh, P())),
    }


def loss(params, x):
    return jnp.mean((x @ params["layer"]["w"] + params["layer"]["b"]) ** 2)


def described(tree):
    """Sum, dtype, spec and shapes of the parts of each leaf, by path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {
        jax.tree_util.keystr(path): [
            float(jnp.sum(jnp.abs(x.astype(jnp.float32)))),
            str(x.dtype),
            str(x.sharding.spec),
            sorted({str(s.data.shape) for s in x.addressable_shards}),
            len(x.sharding.device_set),
        ]
        for path, x in leaves
        if isinstance(x, jax.Array)
    }


def target(tree, mesh, specs):
    """Shapes, types and shardings to restore a tree with."""

    def one(x, spec):
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec))

    return jax.tree.map(one, tree, specs)


def standard(folder, params, other):
    specs = {"layer": {"w": P("model", None), "b": P()}, "step": P()}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "standard", params)
        checkpointer.wait_until_finished()
        same = checkpointer.restore(folder / "standard", jax.tree.map(lambda x: x, params))
        moved = checkpointer.restore(folder / "standard", target(params, other, specs))
        metadata = checkpointer.metadata(folder / "standard").item_metadata
    assert all(jax.tree.leaves(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), same, params)))
    shapes = jax.tree.map(lambda m: [list(m.shape), str(m.dtype)], dict(metadata.tree))
    return {"same": described(same), "moved": described(moved), "metadata": shapes}


def pytree(folder, params, other):
    checkpointer = ocp.PyTreeCheckpointer()
    checkpointer.save(folder / "pytree", params)
    sharding = NamedSharding(other, P("model"))

    def argument(x):
        return ocp.ArrayRestoreArgs(sharding=sharding, global_shape=x.shape, dtype=jnp.float32)

    arguments = jax.tree.map(argument, params["layer"])
    arguments = {"layer": arguments, "step": ocp.RestoreArgs(restore_type=np.ndarray)}
    restored = checkpointer.restore(folder / "pytree", restore_args=arguments)
    return {"layer": described(restored["layer"]), "step": int(restored["step"])}


def manager(folder, params, mesh):
    """Train, save each step, keep two, and continue from the last one."""
    optimizer = optax.adam(1e-2)
    x = jax.device_put(jnp.linspace(-1, 1, 8 * 16).reshape(8, 16), NamedSharding(mesh, P("data")))
    state = {"params": {"layer": params["layer"]}}
    state["opt"] = optimizer.init(state["params"])

    @jax.jit
    def train(state):
        value, grads = jax.value_and_grad(loss)(state["params"], x)
        updates, opt = optimizer.update(grads, state["opt"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    losses = []
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=True)
    with ocp.CheckpointManager(folder / "steps", options=options) as steps:
        for step in range(4):
            state, value = train(state)
            losses.append(float(value))
            steps.save(step, args=ocp.args.StandardSave(state))
        steps.wait_until_finished()
        kept = list(steps.all_steps())
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
        restored = steps.restore(steps.latest_step(), args=ocp.args.StandardRestore(abstract))
    _, value = train(restored)
    return {"losses": losses, "kept": kept, "next": float(value), "state": described(restored)}


def keys_and_functions(folder, params, other):
    """Random keys, and the functions of the second version of the interface."""
    tree = {"key": jax.random.key(3), "w": params["layer"]["w"]}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "keys", tree)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(folder / "keys", tree)
    v1.save_pytree(folder / "v1", params)
    specs = {"layer": {"w": P(None, "model"), "b": P("data")}, "step": P()}
    loaded = v1.load_pytree(folder / "v1", target(params, other, specs))
    return {
        "key": jax.random.key_data(restored["key"]).tolist(),
        "implementation": str(jax.random.key_impl(restored["key"])),
        "loaded": described(loaded),
    }


def errors(folder, params):
    wrong = jax.tree.map(lambda x: jax.ShapeDtypeStruct((3, *x.shape), x.dtype), params)
    found = []
    with ocp.StandardCheckpointer() as checkpointer:
        for path, tree in ((folder / "absent", params), (folder / "standard", wrong)):
            try:
                checkpointer.restore(path, tree)
                found.append("restored")
            except (FileNotFoundError, ValueError) as e:
                found.append("no checkpoint" if isinstance(e, FileNotFoundError) else "other shape")
    return found


def main():
    mesh, other = mesh_of((4, 2)), mesh_of((2, 4))
    params = parameters(mesh)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        result = {
            "standard": standard(folder, params, other),
            "pytree": pytree(folder, params, other),
            "manager": manager(folder, params, mesh),
            "more": keys_and_functions(folder, params, other),
            "errors": errors(folder, params),
        }
    print(json.dumps(result))


main()
