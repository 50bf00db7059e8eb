"""Checkpoints of two processes, restored by one, and the reverse."""

from __future__ import annotations

import numpy as np
from several import together

from primax_core import device_put
from primax_distributed import NamedSharding, P, checkpoint, make_mesh

JOIN = """
from primax_distributed import Mesh, NamedSharding, P, checkpoint
processes.initialize(f'127.0.0.1:{port}', n, rank, freeze_timeout_seconds=8)
folder = sys.argv[4]
mesh = Mesh(np.array(pc.devices()), ("x",))
values = np.arange(16, dtype=np.float32).reshape(8, 2)
"""


def check_ended(outputs, statuses):
    assert statuses == [0, 0], outputs


def test_saved_by_two_and_restored_by_one(tmp_path):
    outputs, statuses = together(
        JOIN
        + """
from primax_distributed.checkpoint import _stores
written = []
original = _stores.host_parts
_stores.host_parts = lambda *a: written.extend(p := original(*a)) or p
from primax_distributed.checkpoint import _leaves
_leaves.host_parts = _stores.host_parts
x = pc.device_put(values, NamedSharding(mesh, P("x")))
equal = pc.device_put(values, NamedSharding(mesh, P()))
local = pc.device_put(np.float32(rank + 5), pc.local_devices()[0])
tree = {"x": x, "equal": equal, "local": local, "n": np.full(3, rank), "rank": rank}
checkpoint.save(folder, tree, step=1)
print("parts", [b for b, _ in written], checkpoint.steps(folder))
with checkpoint.AsyncCheckpointer(folder) as checkpoints:
    for step in range(2, 5):
        checkpoints.save({**tree, "rank": step}, step)
out = checkpoint.restore(folder, {"x": x, "equal": equal, "local": np.ndarray,
                                  "n": np.ndarray, "rank": 0})
(part,) = out["x"].addressable_shards
assert np.array_equal(part.data, values[part.index]) and out["x"].sharding == x.sharding
print("restored", part.index[0], out["local"], out["n"], out["rank"])
assert np.array_equal(out["equal"].addressable_data(0), values)
""",
        arguments=[str(tmp_path)],
    )
    check_ended(outputs, statuses)
    assert "parts [((0, 8), (0, 2)), (), ((0, 4), (0, 2))] [1]" in outputs[0]
    assert "parts [((4, 8), (0, 2))] [1]" in outputs[1]
    for i, output in enumerate(outputs):
        assert f"restored slice({4 * i}, {4 * i + 4}, None) 5.0 [0 0 0] 4" in output
    assert checkpoint.steps(tmp_path) == [1, 2, 3, 4]
    values = np.arange(16, dtype=np.float32).reshape(8, 2)
    out = checkpoint.restore(tmp_path)
    assert np.array_equal(out["x"], values) and np.array_equal(out["equal"], values)
    sharding = NamedSharding(make_mesh((2, 4), ("a", "b")), P("b", "a"))
    out = checkpoint.restore(tmp_path, {"x": sharding}, step=2, partial=True)
    assert np.array_equal(out["x"], values)


def test_saved_by_one_and_restored_by_two(tmp_path):
    values = np.arange(16, dtype=np.float32).reshape(8, 2)
    sharding = NamedSharding(make_mesh((8,), ("x",)), P("x"))
    checkpoint.save(tmp_path, {"x": device_put(values, sharding), "step": 3}, step=3)
    outputs, statuses = together(
        JOIN
        + """
out = checkpoint.restore(folder, mesh)
(part,) = out["x"].addressable_shards
assert np.array_equal(part.data, values[part.index]) and part.data.shape == (4, 2)
print(out["step"], out["x"].shape, checkpoint.prune(folder, 1))
""",
        arguments=[str(tmp_path)],
    )
    check_ended(outputs, statuses)
    assert all("3 (8, 2) []" in output for output in outputs)


def test_processes_that_fail(tmp_path):
    outputs, statuses = together(
        JOIN
        + """
x = pc.device_put(values, NamedSharding(mesh, P("x")))
y = pc.device_put(values, NamedSharding(mesh, P()))
save = lambda tree, step, **options: checkpoint.save(folder, tree, step, **options)
save(x, 1)
print("again", attempt(lambda: save(x, 1)))
print("trees", attempt(lambda: save([x, y][rank], 2)))
print("steps", attempt(lambda: save(x, 2 + rank)))
print("leaf0", attempt(lambda: save([object(), x][rank], 2)))
print("leaf1", attempt(lambda: save([x, object()][rank], 2)))
print("none", attempt(lambda: checkpoint.restore(folder + "/none", mesh)))
print("folders", attempt(lambda: save(x, 2)))
if rank == 0:
    print("alone", attempt(lambda: save(x, 3, timeout_seconds=0.5)))
else:
    time.sleep(3)
print(checkpoint.steps(folder))
""",
        arguments=[str(tmp_path)],
    )
    check_ended(outputs, statuses)
    first, second = ([*o.splitlines()] for o in outputs)

    def line(lines, start):
        return next(x for x in lines if x.startswith(start))

    assert "CheckpointExistsError" in line(first, "again")
    assert "rank 0 could not save the checkpoint: CheckpointExistsError" in line(second, "again")
    assert "rank 1: CheckpointMismatchError: rank 1 saves step 2 with another structure" in line(
        first, "trees"
    )
    assert "CheckpointMismatchError: rank 1 saves step 2" in line(second, "trees")
    assert "CheckpointMismatchError: rank 1 saves step 3" in line(second, "steps")
    assert "TypeError: the leaf at the root has type object" in line(first, "leaf0")
    assert "rank 0 could not save the checkpoint: TypeError" in line(second, "leaf0")
    assert "rank 1: TypeError: the leaf at the root has type object" in line(first, "leaf1")
    assert "TypeError: the leaf" in line(second, "leaf1")
    assert "CheckpointNotFoundError" in line(first, "none")
    assert "CheckpointNotFoundError" in line(second, "none")
    assert line(first, "folders") == "folders None" == line(second, "folders")
    assert "rank 1 did not come to the checkpoint within 0.5 s: every one of the 2" in line(
        first, "alone"
    )
    assert first[-1] == second[-1] == "[1, 2]"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["1", "2"]


def test_a_process_that_dies_while_it_saves(tmp_path):
    outputs, statuses = together(
        JOIN
        + """
from primax_distributed.checkpoint import _save
x = pc.device_put(values, NamedSharding(mesh, P("x")))
checkpoint.save(folder, x, 1)
if rank == 1:
    _save.write_arrays = lambda *args: os._exit(1)
start = time.monotonic()
print("error", attempt(lambda: checkpoint.save(folder, x, 2)))
print("steps", checkpoint.steps(folder), time.monotonic() - start < 20)
os._exit(0)
""",
        arguments=[str(tmp_path)],
    )
    assert statuses[0] == 0, outputs
    assert "error CheckpointWriteError: the checkpoint was not completed: rank 1 died" in outputs[0]
    assert "steps [1] True" in outputs[0]
    assert checkpoint.steps(tmp_path) == [1]


def test_arrays_at_addresses(tmp_path):
    outputs, statuses = together(
        JOIN
        + """
from primax_distributed.array_serialization import serialization
x = pc.device_put(values, NamedSharding(mesh, P("x")))
manager = serialization.GlobalAsyncCheckpointManager()
path = folder + "/x"
manager.serialize_with_paths([x], [path], on_commit_callback=lambda: print("committed by", rank))
(out,) = manager.deserialize_with_paths([NamedSharding(mesh, P(None, "x"))], [path])
(part,) = out.addressable_shards
print(np.array_equal(part.data, values[part.index]), sorted(os.listdir(path)))
local = pc.device_put(values, pc.local_devices()[0])
print(attempt(lambda: manager.serialize_with_paths([local], [path])))
""",
        arguments=[str(tmp_path)],
    )
    check_ended(outputs, statuses)
    for output in outputs:
        assert "True ['.zarray', '0.0', '1.0']" in output
        assert "is on devices of one of 2 processes only" in output
    assert "committed by 0" in outputs[0] and "committed" not in outputs[1]


def test_an_object_store(tmp_path):
    outputs, statuses = together(
        JOIN
        + """
x = pc.device_put(values, NamedSharding(mesh, P("x")))
with checkpoint.AsyncCheckpointer(folder) as checkpoints:
    for step in range(4):
        checkpoints.save({"x": x * step, "step": step, "big": np.full(5000, step)}, step)
print(attempt(lambda: checkpoint.save(folder, {"x": x, "step": 3, "big": values}, 3)))
print("pruned", checkpoint.prune(folder, keep=2))
out = checkpoint.restore(folder, {"x": x, "step": 0, "big": np.ndarray})
(part,) = out["x"].addressable_shards
assert np.array_equal(part.data, 3 * values[part.index]) and out["step"] == 3
""",
        arguments=[f"file://{tmp_path}/run"],
    )
    check_ended(outputs, statuses)
    assert "CheckpointExistsError: file:" in outputs[0] and "pruned [0, 1]" in outputs[0]
    assert "CheckpointWriteError: rank 0 could not save" in outputs[1], outputs[1]
    url = f"file://{tmp_path}/run"
    assert checkpoint.steps(url) == [2, 3]
    values = np.arange(16, dtype=np.float32).reshape(8, 2)
    assert np.array_equal(checkpoint.restore(url, step=2)["x"], 2 * values)
    assert (checkpoint.restore(url)["big"] == 3).all()
