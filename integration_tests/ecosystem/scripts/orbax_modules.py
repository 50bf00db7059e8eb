"""Orbax's handlers, managers, transformations and second interface, on eight CPU devices."""

import json
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding
from orbax.checkpoint.experimental import v1

jax.config.update("jax_num_cpu_devices", 8)
results = {}
mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
rows, both = NamedSharding(mesh, P("a")), NamedSharding(mesh, P("a", "b"))


def record(name, value):
    """Values, dtypes and shardings of the leaves, by path."""
    results[name] = numbers = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(value):
        if isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
            array = np.asarray(leaf).astype(np.complex128)
            described = [float(abs(array).sum()), str(leaf.dtype), list(leaf.shape)]
            if isinstance(leaf, jax.Array):
                described += [len(leaf.sharding.device_set), str(leaf.sharding.is_fully_replicated)]
        else:
            described = leaf if isinstance(leaf, (int, float, str)) else type(leaf).__name__
        numbers[jax.tree_util.keystr(path)] = described


def sample(dtype):
    return jnp.arange(-4, 12).astype(dtype).reshape(8, 2)


state = {
    "sharded": jax.device_put(sample("float32"), both),
    "rows": jax.device_put(sample("bfloat16"), rows),
    "replicated": jax.device_put(jnp.float16(1.5), NamedSharding(mesh, P())),
    "host": np.arange(3.0),
    "scalars": (3, 2.5),
    "nested": [jnp.ones((1, 2)), {"flag": jnp.array([True, False])}],
    "types": {
        name: sample(name)
        for name in ("int8", "uint16", "int32", "complex64", "float8_e4m3fn", "float8_e5m2", "int4")
    },
}
folder = Path(tempfile.mkdtemp())
abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)

# Checkpointers: standard and of pytrees, synchronous and asynchronous
with ocp.StandardCheckpointer() as standard:
    standard.save(folder / "standard", state)
    standard.wait_until_finished()
    record("standard", standard.restore(folder / "standard", abstract))
    record("standard, untargeted", standard.restore(folder / "standard"))
    moved = {**abstract, "rows": jax.ShapeDtypeStruct((8, 2), jnp.float32, sharding=both)}
    record("standard, moved and converted", standard.restore(folder / "standard", moved))
    standard.save(folder / "standard", {"other": jnp.ones(2)}, force=True)
    standard.wait_until_finished()
    record("standard, overwritten", standard.restore(folder / "standard"))
for zarr3 in (False, True):
    for ocdbt in (False, True):
        handler = ocp.PyTreeCheckpointHandler(use_ocdbt=ocdbt, use_zarr3=zarr3)
        with ocp.AsyncCheckpointer(handler) as pytree:
            path = folder / f"pytree{zarr3}{ocdbt}"
            pytree.save(path, args=ocp.args.PyTreeSave(state))
            pytree.wait_until_finished()
            record(f"pytree, zarr3 {zarr3}, ocdbt {ocdbt}", pytree.restore(path))
checkpointer = ocp.PyTreeCheckpointer()
path = folder / "pytree"
narrow = jax.tree.map(lambda _: ocp.SaveArgs(), state)
narrow["sharded"] = ocp.SaveArgs(dtype=jnp.dtype("bfloat16"), chunk_byte_size=16)
checkpointer.save(path, args=ocp.args.PyTreeSave(state, save_args=narrow))
metadata = checkpointer.metadata(path).item_metadata.tree
results["metadata"] = jax.tree.map(
    lambda m: str((getattr(m, "shape", None), getattr(m, "dtype", None))),
    metadata,
    is_leaf=lambda m: hasattr(m, "sharding"),
)
targets = ocp.checkpoint_utils.construct_restore_args(state)
record("restore arguments", checkpointer.restore(path, args=ocp.args.PyTreeRestore(
    state, restore_args=targets)))  # fmt: skip
record("restore arguments, other", checkpointer.restore(path, args=ocp.args.PyTreeRestore(
    item={"sharded": state["sharded"], "rows": state["rows"]},
    restore_args={
        "sharded": ocp.ArrayRestoreArgs(sharding=SingleDeviceSharding(jax.devices()[2]),
                                        dtype=jnp.float32, global_shape=(8, 4), strict=False),
        "rows": ocp.RestoreArgs(restore_type=np.ndarray),
    }, partial_restore=True)))  # fmt: skip
placeholder = {**state, "sharded": ocp.PLACEHOLDER, "types": ocp.PLACEHOLDER}
try:
    record("placeholders", checkpointer.restore(path, args=ocp.args.PyTreeRestore(
        {**state, "sharded": ocp.PLACEHOLDER},
        restore_args={**targets, "sharded": ocp.PLACEHOLDER})))  # fmt: skip
except (TypeError, ValueError) as error:
    results["placeholders"] = type(error).__name__

# Transformations of the stored tree
transforms = {
    "renamed": ocp.Transform(original_key="rows"),
    "doubled": ocp.Transform(original_key="sharded", value_fn=lambda x: 2 * x),
}
item = {"renamed": state["rows"], "doubled": state["sharded"]}
record("transformed", checkpointer.restore(path, args=ocp.args.PyTreeRestore(
    item, restore_args=ocp.checkpoint_utils.construct_restore_args(item),
    transforms=transforms, transforms_default_to_original=False)))  # fmt: skip
record("transformed, in memory", ocp.apply_transformations(
    {"a": {"b": 1, "c": 2}, "d": 3.0}, {r"x(.*)": ocp.Transform(original_key=r"a\1")},
    {"x": {"b": 0, "c": 0}, "d": 0.0}, default_to_original=True))  # fmt: skip
record("merged", ocp.merge_trees({"a": {"b": 1}}, {"a": {"c": 2}}, {"d": 3}))

# Other handlers
with ocp.Checkpointer(ocp.ArrayCheckpointHandler()) as single:
    single.save(folder / "array", args=ocp.args.ArraySave(state["sharded"]))
    record("array", single.restore(folder / "array", args=ocp.args.ArrayRestore(
        restore_args=ocp.ArrayRestoreArgs(sharding=rows))))  # fmt: skip
with ocp.Checkpointer(ocp.JsonCheckpointHandler()) as text:
    text.save(folder / "json", args=ocp.args.JsonSave({"rate": 0.1, "names": ["a", "b"]}))
    results["json"] = text.restore(folder / "json")
key = jax.random.key(7)
with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as composite:
    composite.save(folder / "composite", args=ocp.args.Composite(
        state=ocp.args.StandardSave({"w": state["sharded"]}), meta=ocp.args.JsonSave({"step": 3}),
        key=ocp.args.JaxRandomKeySave(key), old=ocp.args.JaxRandomKeySave(jax.random.PRNGKey(1)),
        numpy=ocp.args.NumpyRandomKeySave(np.random.RandomState(0).get_state()),
    ))  # fmt: skip
    back = composite.restore(folder / "composite", args=ocp.args.Composite(
        state=ocp.args.StandardRestore(), meta=ocp.args.JsonRestore(),
        key=ocp.args.JaxRandomKeyRestore(), old=ocp.args.JaxRandomKeyRestore(),
        numpy=ocp.args.NumpyRandomKeyRestore(),
    ))  # fmt: skip
    results["random keys"] = [jax.random.key_data(back.key).tolist(), back.old.tolist(),
        str(jax.random.key_impl(back.key)), np.random.RandomState(0).get_state()[1][:3].tolist(),
        back.numpy[1][:3].tolist()]  # fmt: skip
    record("composite", back.state)
    results["composite, json"] = back.meta

# Managers
best = lambda metrics: metrics["loss"]
options = ocp.CheckpointManagerOptions(
    max_to_keep=2, best_fn=best, best_mode="min", save_interval_steps=2, create=True,
    step_prefix="s", step_format_fixed_length=3,
)  # fmt: skip
with ocp.CheckpointManager(folder / "manager", options=options, metadata={"run": 5}) as manager:
    saved = []
    for step, loss in enumerate((0.5, 0.3, 0.4, 0.2, 0.1, 0.9, 0.7)):
        value = jax.tree.map(lambda x, step=step: x + step, state["types"]["int32"])
        saved.append(manager.save(step, args=ocp.args.Composite(
            params=ocp.args.StandardSave({"w": value}), extra=ocp.args.JsonSave({"step": step}),
        ), metrics={"loss": loss}))  # fmt: skip
    manager.wait_until_finished()
    results["manager"] = [
        saved,
        list(manager.all_steps()),
        manager.best_step(),
        manager.latest_step(),
        manager.should_save(8),
        manager.metrics(manager.best_step()),
    ]
    record("manager, best", manager.restore(manager.best_step()).params)
    manager.delete(manager.all_steps()[0])
    results["manager, deleted"] = list(manager.all_steps())
    results["manager, files"] = sorted(p.name for p in (folder / "manager").iterdir())
policy = ocp.checkpoint_managers
options = ocp.CheckpointManagerOptions(
    preservation_policy=policy.AnyPreservationPolicy([policy.LatestN(1), policy.EveryNSteps(3)]),
    save_decision_policy=policy.FixedIntervalPolicy(1),
)
with ocp.CheckpointManager(folder / "policies", options=options) as manager:
    for step in range(6):
        manager.save(step, args=ocp.args.StandardSave({"w": state["rows"]}))
    manager.wait_until_finished()
    results["policies"] = list(manager.all_steps())
    record(
        "policies", manager.restore(5, args=ocp.args.StandardRestore({"w": abstract["sharded"]}))
    )

# The second interface
v1.save_pytree(folder / "one", state)
record("v1", v1.load_pytree(folder / "one", {**abstract, "host": state["host"]}))
record("v1, untargeted", v1.load_pytree(folder / "one"))
results["v1, metadata"] = str(v1.pytree_metadata(folder / "one").metadata["rows"].shape)
response = v1.save_pytree_async(folder / "two", {"w": state["rows"]})
response.result()
record("v1, asynchronous", v1.load_pytree(folder / "two"))
v1.save_checkpointables(folder / "several", {"params": {"w": state["sharded"]}, "more": {"a": 1}})
record("v1, several", dict(v1.load_checkpointables(folder / "several")))
with v1.training.Checkpointer(folder / "training") as training:
    for step in range(3):
        training.save_pytree(step, {"w": state["rows"] + step})
    results["v1, steps"] = [c.step for c in training.checkpoints]
    record("v1, latest", training.load_pytree())

# Trees and errors
flat = ocp.tree.to_flat_dict(state["types"], sep=".")
results["flat"] = sorted(flat)
record("unflattened", ocp.tree.from_flat_dict(flat, sep="."))
raised = []
for action in (
    lambda: checkpointer.restore(folder / "absent"),
    lambda: checkpointer.save(path, state),
    lambda: ocp.StandardCheckpointer().restore(folder / "standard", {"missing": jnp.ones(2)}),
    lambda: ocp.CheckpointManager(folder / "manager").restore(77),
):
    try:
        action()
        raised.append("nothing")
    except Exception as error:
        raised.append(type(error).__name__)
results["raised"] = raised
print(json.dumps(results))
