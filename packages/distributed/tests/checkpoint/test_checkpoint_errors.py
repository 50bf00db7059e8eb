"""Errors of checkpoints: damaged files, other types, paths without a checkpoint, disk limits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from primax_core import ShapeDtypeStruct, device_put
from primax_distributed import NamedSharding, P, checkpoint, make_mesh
from primax_distributed.checkpoint import _folders, _save

X = np.arange(1024, dtype=np.float32).reshape(8, 128)


def named(*spec):
    return NamedSharding(make_mesh((2, 4), ("x", "y")), P(*spec))


@pytest.fixture
def saved(tmp_path):
    tree = {"a": device_put(X, named("x", "y")), "b": [X[0], 3]}
    checkpoint.save(tmp_path, tree, step=4)
    return tmp_path


def test_no_checkpoint(tmp_path):
    missing = checkpoint.CheckpointNotFoundError
    with pytest.raises(missing, match="none is no folder of checkpoints: No such file"):
        checkpoint.restore(tmp_path / "none")
    with pytest.raises(missing, match="has no complete checkpoint"):
        checkpoint.restore(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(missing, match="file is no folder of checkpoints: Not a directory"):
        checkpoint.steps(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        checkpoint.describe(tmp_path)
    checkpoint.save(tmp_path, 1, step=1)
    with pytest.raises(missing, match="no complete checkpoint of step 2; the last ones are 1"):
        checkpoint.restore(tmp_path, step=2)
    with pytest.raises(ValueError, match="nope://b/c/ is no address of an object store"):
        checkpoint.save("nope://b/c", 1, step=1)


def test_damaged_metadata(saved):
    file = saved / "4" / "checkpoint.json"
    original = file.read_bytes()
    damaged = checkpoint.CheckpointDamagedError
    for size in (0, 1, len(original) // 2, len(original) - 1):
        file.write_bytes(original[:size])
        with pytest.raises(damaged, match=r"checkpoint\.json is truncated or changed"):
            checkpoint.restore(saved)
    file.write_bytes(original.replace(b"128", b"129"))
    with pytest.raises(damaged, match=r"the checksum of checkpoint\.json is wrong"):
        checkpoint.restore(saved)
    newer = {**json.loads(original), "version": 99}
    file.write_text(json.dumps(newer))
    with pytest.raises(checkpoint.CheckpointError, match="has version 99 of the format"):
        checkpoint.restore(saved)
    file.unlink()
    with pytest.raises(checkpoint.CheckpointNotFoundError):
        checkpoint.restore(saved)


def test_damaged_arrays(saved):
    files = [f for f in (saved / "4" / "arrays").rglob("*") if f.is_file()]
    named_errors = 0
    for file in files:
        original = file.read_bytes()
        middle = len(original) // 2
        flipped = bytearray(original)
        flipped[middle] ^= 1
        for contents in (b"", original[:middle], original[:-1], bytes(flipped), None):
            if contents is None:
                file.unlink()
            else:
                file.write_bytes(contents)
            try:
                out = checkpoint.restore(saved)
            except checkpoint.CheckpointDamagedError as e:
                assert re.search(r"the array at \['[ab]'\].* is damaged", str(e)), e
                named_errors += 1
            else:  # bytes of the file that no array uses
                assert np.array_equal(out["a"], X) and np.array_equal(out["b"][0], X[0])
            file.write_bytes(original)
    assert named_errors >= 5
    assert np.array_equal(checkpoint.restore(saved)["a"], X)


def test_other_types(saved):
    mismatch = checkpoint.CheckpointMismatchError
    good = {"a": named(), "b": [np.ndarray, 0]}
    checkpoint.restore(saved, good)
    for change, text in [
        ({"a": ShapeDtypeStruct((4, 128), np.float32)}, r"\['a'\] .* is float32\[8, 128\], but "
         r"the target asks for float32\[4, 128\]"),
        ({"a": ShapeDtypeStruct((8, 128), np.int32)}, r"asks for int32\[8, 128\]"),
        ({"b": [X[0, :3], 0]}, r"\['b'\]\[0\] .* asks for float32\[3\]"),
        ({"b": [np.ndarray, 0.5]}, r"\['b'\]\[1\] .* is int in Python, .* float in Python"),
        ({"b": [np.ndarray, "s"]}, "asks for str in Python"),
        ({"a": 1}, "asks for int in Python"),
        ({"b": [np.ndarray, X]}, r"is int in Python, but the target asks for float32\[8, 128\]"),
        ({"b": [np.ndarray]}, r"the target has no leaf at \['b'\]\[1\], but .* pass partial=True"),
        ({"b": [np.ndarray, 0, 0]}, r"has no leaf at \['b'\]\[2\]. Its leaves are \['a'\], "
         r"\['b'\]\[0\], \['b'\]\[1\]"),
        ({"c": named()}, r"has no leaf at \['c'\]"),
        ({"b": 3}, r"has a subtree, and the target a leaf, at \['b'\]"),
        ({"a": {"w": named()}}, r"has no leaf at \['a'\]\['w'\]"),
    ]:  # fmt: skip
        with pytest.raises(mismatch, match=text):
            checkpoint.restore(saved, {**good, **change})
    with pytest.raises(TypeError, match=r"the target has a object at \['a'\]: pass a sharding"):
        checkpoint.restore(saved, {**good, "a": object()})
    with pytest.raises(ValueError, match=r"leaf at \['a'\] .* not divisible"):
        checkpoint.restore(saved, {**good, "a": _three_rows()})


def _three_rows():
    import primax_core as pc

    return NamedSharding(make_mesh((3,), ("z",), devices=pc.devices()[:3]), P("z"))


def test_leaves_that_cannot_be_saved(tmp_path):
    for leaf, text in [
        (object(), r"at \['x'\] has type object"),
        (np.array(["s"]), "has dtype <U1"),
        (np.array([None]), "has dtype object"),
        (b"bytes", "has type bytes"),
    ]:
        with pytest.raises(TypeError, match=text):
            checkpoint.save(tmp_path, {"x": leaf}, step=1)
    for step, error in ((-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error):
            checkpoint.save(tmp_path, 1, step=step)
    deleted = device_put(X)
    deleted.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        checkpoint.save(tmp_path, deleted, step=1)
    assert not [*tmp_path.iterdir()]


def test_paths_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    refused = checkpoint.CheckpointWriteError
    for path in (file, file / "below", "/proc/checkpoints"):
        with pytest.raises(refused, match=f"{path} cannot be written"):
            checkpoint.save(path, X, step=1)
        with pytest.raises(OSError), checkpoint.AsyncCheckpointer(path) as checkpoints:
            checkpoints.save(X, 1)


def test_a_full_disk(tmp_path):
    code = """
import resource, sys
import numpy as np
from primax_distributed import checkpoint
checkpoint.save(sys.argv[1], np.zeros(10), step=0)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoint.save(sys.argv[1], np.random.rand(100_000), step=1)
except checkpoint.CheckpointWriteError as e:
    print("refused:", e)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
print(checkpoint.steps(sys.argv[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60,
        env=os.environ,
    )  # fmt: skip
    assert "refused:" in done.stdout and "File too large" in done.stdout, done
    assert done.stdout.endswith("[0]\n")
    assert os.listdir(tmp_path) == ["0"]


def test_two_writers_of_a_step(tmp_path):
    first, second = checkpoint.AsyncCheckpointer(tmp_path), checkpoint.AsyncCheckpointer(tmp_path)
    refused = 0
    for step in range(5):
        for writer in (first, second):
            writer.save({"x": np.full(1000, step)}, step)
        for writer in (first, second):
            try:
                writer.wait()
            except checkpoint.CheckpointExistsError as e:
                assert f"step {step}" in str(e)
                refused += 1
    assert refused == 5 and checkpoint.steps(tmp_path) == [*range(5)]
    assert {f.name for f in tmp_path.iterdir()} == {*"01234"}


def test_a_writer_that_commits_after_the_check(tmp_path, monkeypatch):
    def check_and_let_another_writer_commit(path, step, overwrite):
        monkeypatch.undo()
        checkpoint.save(path, {"x": 1}, step)

    with pytest.raises(checkpoint.CheckpointExistsError, match="another writer committed step 3"):
        writer = checkpoint.AsyncCheckpointer(tmp_path)
        begin = _save.begin

        def begin_and_wait(*args):
            folder = begin(*args)
            monkeypatch.setattr(_folders, "_check_absent", check_and_let_another_writer_commit)
            return folder

        monkeypatch.setattr(_save, "begin", begin_and_wait)
        writer.save({"x": 2}, 3)
        writer.wait()
    assert checkpoint.restore(tmp_path) == {"x": 1}
    assert {f.name for f in tmp_path.iterdir()} == {"3"}


KILLED = """
import os, random, signal, sys, time
import numpy as np
from primax_distributed import checkpoint

def save(folder, first):
    values = [np.full((40, 1000), first) for _ in range(6)]
    with checkpoint.AsyncCheckpointer(folder) as checkpoints:
        for step in range(first, 10**6):
            for x in values:
                x[:] = step
            checkpoints.save({"x": values, "step": step}, step)
            if step % 3 == 2:
                checkpoints.save({"x": values, "step": step}, step, overwrite=True)
            if step % 5 == 4:
                checkpoint.prune(folder, keep=2)

def check(folder):
    steps = checkpoint.steps(folder)
    for step in steps[-2:]:
        out = checkpoint.restore(folder, step=step)
        assert out["step"] == step and all((x == step).all() for x in out["x"]), step
    return steps[-1] if steps else -1

# tensorstore must not run in the process that forks
folder, rounds, result = sys.argv[1], int(sys.argv[2]), sys.argv[3]
last, seconds = -1, random.Random(0)
for i in range(rounds):
    child = os.fork()
    if not child:
        save(folder, last + 1)
    time.sleep(0.1 + 0.5 * seconds.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    child = os.fork()
    if not child:
        try:
            found = check(folder)
            with open(result, "w") as f:
                f.write(str(found))
            os._exit(0 if found >= last else 3)
        except BaseException as e:
            print(type(e).__name__, e, flush=True)
            os._exit(4)
    assert os.waitpid(child, 0)[1] == 0
    with open(result) as f:
        last = int(f.read())
print(rounds, "kills,", last, "steps")
"""


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_kills_at_random_points(tmp_path, scheme):
    arguments = [f"{scheme}{tmp_path}/steps", "20", str(tmp_path / "last")]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done
    kills, _, steps, _ = done.stdout.split()
    assert int(kills) == 20 and int(steps) > 20
