"""Checkpoints in object stores: commits without a rename, interruptions, removal."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

import primax_core as pc
from primax_distributed import NamedSharding, P, checkpoint, make_mesh
from primax_distributed.array_serialization import pytree_serialization
from primax_distributed.checkpoint import _buckets
from primax_distributed.checkpoint._buckets import Bucket

X = np.arange(64, dtype=np.float32).reshape(8, 8)
_names = itertools.count()


@pytest.fixture(params=["memory", "file"])
def url(request, tmp_path):
    if request.param == "memory":
        return f"memory://test{next(_names)}/run"
    return f"file://{tmp_path}/run"


def named(*spec):
    return NamedSharding(make_mesh((2, 4), ("x", "y")), P(*spec))


def kinds(url):
    """The keys without their last parts."""
    return sorted({key.split("/")[0] for key in Bucket(url).keys()})


def test_saved_and_restored(url):
    assert checkpoint.steps(url) == []
    tree = {"w": pc.device_put(X, named("x", "y")), "n": np.arange(3), "step": 7}
    checkpoint.save(url, tree, step=7)
    assert checkpoint.steps(f"{url}/") == [7] and kinds(url) == ["commits", "data"]
    out = checkpoint.restore(url, tree)
    assert out["w"].sharding == tree["w"].sharding and out["step"] == 7
    assert np.array_equal(out["w"], X) and np.array_equal(out["n"], np.arange(3))
    assert np.array_equal(checkpoint.restore(url, {**tree, "w": named("y")}, step=7)["w"], X)
    assert checkpoint.describe(url)["w"].shape == (8, 8)
    missing = checkpoint.CheckpointNotFoundError
    with pytest.raises(missing, match="no complete checkpoint of step 8; the last ones are 7"):
        checkpoint.restore(url, step=8)
    with pytest.raises(missing, match="run/other/ has no complete checkpoint"):
        checkpoint.restore(f"{url}/other")


def test_steps_that_exist(url):
    checkpoint.save(url, {"x": 1}, 3)
    with pytest.raises(checkpoint.CheckpointExistsError, match="has a checkpoint of step 3 alr"):
        checkpoint.save(url, {"x": 2}, 3)
    for value in (3, 4):
        checkpoint.save(url, {"x": value}, 3, overwrite=True)
        assert checkpoint.restore(url) == {"x": value} and checkpoint.steps(url) == [3]
    assert len(Bucket(url).keys("commits/")) == 1


def test_written_in_the_background(url):
    with checkpoint.AsyncCheckpointer(url) as checkpoints:
        for step in range(5):
            checkpoints.save({"x": np.full(1000, step)}, step)
    assert checkpoint.prune(url, keep=2) == [0, 1, 2]
    assert checkpoint.steps(url) == [3, 4]
    data = {key.split("/")[1].split("-")[0] for key in Bucket(url).keys("data/")}
    assert data == {"3", "4"} and kinds(url) == ["commits", "data"]


def test_two_writers_of_a_step(url):
    first, second = checkpoint.AsyncCheckpointer(url), checkpoint.AsyncCheckpointer(url)
    refused = 0
    for step in range(4):
        for writer in (first, second):
            writer.save({"x": np.full(1000, step)}, step)
        for writer in (first, second):
            try:
                writer.wait()
            except checkpoint.CheckpointExistsError as e:
                assert f"step {step}" in str(e)
                refused += 1
    assert refused == 4 and checkpoint.steps(url) == [*range(4)]
    for step in range(4):
        assert (checkpoint.restore(url, step=step)["x"] == step).all()
    assert kinds(url) == ["commits", "data"]
    assert len({key.split("/")[1] for key in Bucket(url).keys("data/")}) == 4


class Killed(BaseException):
    """The process ends at this point."""


class Interrupted:
    """Bucket operations of which the n-th and later ones fail, before or after their effect."""

    def __init__(self, monkeypatch, n, after, error=Killed):
        self.left, self.after, self.error = n, after, error
        for name in ("write", "delete_below"):
            monkeypatch.setattr(Bucket, name, self.wrapped(getattr(Bucket, name)))

    def wrapped(self, original):
        def operation(bucket, *args):
            self.left -= 1
            if self.left < 0 and not (self.after and self.left == -1):
                raise self.error()
            result = original(bucket, *args)
            if self.left < 0:
                raise self.error()
            return result

        return operation


def replace_and_prune(url):
    checkpoint.save(url, {"x": np.full(1000, 2), "n": 2}, 2)
    checkpoint.save(url, {"x": np.full(1000, 3), "n": 3}, 2, overwrite=True)
    checkpoint.prune(url, keep=1)


@pytest.mark.parametrize("after", [False, True])
def test_interrupted_at_any_point(url, monkeypatch, after):
    """There is always a whole last checkpoint, and remains are removed later."""
    for n in range(0, 100, 1 if "memory" in url else 3):
        place = f"{url}/{n}"
        checkpoint.save(place, {"x": np.full(1000, 1), "n": 1}, 1)
        with monkeypatch.context() as patch:
            Interrupted(patch, n, after)
            try:
                replace_and_prune(place)
            except Killed:
                ended = False
            else:
                ended = True
        for step in checkpoint.steps(place):
            out = checkpoint.restore(place, step=step)
            assert (out["x"] == out["n"]).all()
        assert checkpoint.steps(place)
        checkpoint.prune(place, keep=1, remains_after_seconds=3600)
        last = checkpoint.restore(place)
        checkpoint.prune(place, keep=1, remains_after_seconds=-1)
        assert checkpoint.restore(place)["n"] == last["n"]
        assert kinds(place) == ["commits", "data"]
        assert len({key.split("/")[1] for key in Bucket(place).keys("data/")}) == 1
        if ended:
            break
    assert 8 < n < 99


@pytest.mark.parametrize("after", [False, True])
def test_errors_of_the_store(url, monkeypatch, after):
    """A write whose answer is lost may have been made."""
    for n in range(0, 100, 1 if "memory" in url else 3):
        place = f"{url}/{n}"
        checkpoint.save(place, {"x": np.full(1000, 1), "n": 1}, 1)
        with monkeypatch.context() as patch:
            Interrupted(patch, n, after, lambda: checkpoint.CheckpointWriteError("no answer"))
            try:
                checkpoint.save(place, {"x": np.full(1000, 2), "n": 2}, 2)
            except checkpoint.CheckpointWriteError:
                ended = False
            else:
                ended = True
        out = checkpoint.restore(place)
        assert (out["x"] == out["n"]).all() and out["n"] in ((1, 2) if not ended else (2,))
        checkpoint.prune(place, keep=1, remains_after_seconds=-1)
        assert checkpoint.restore(place)["n"] == out["n"] and kinds(place) == ["commits", "data"]
        if ended:
            break
    assert n < 99


def test_a_slow_writer_whose_data_were_removed(url, monkeypatch):
    checkpoint.save(url, {"n": 1}, 1)
    commit = Bucket.commit

    def slow(self, *args):
        checkpoint.prune(url, keep=1, remains_after_seconds=-1)
        commit(self, *args)

    monkeypatch.setattr(Bucket, "commit", slow)
    with pytest.raises(checkpoint.CheckpointWriteError, match="`prune` removed the data"):
        checkpoint.save(url, {"x": np.ones(1000)}, 2)
    assert checkpoint.steps(url) == [1] and kinds(url) == ["commits"]


def test_recent_data_are_kept(url, monkeypatch):
    checkpoint.save(url, {"n": 1}, 1)
    commit = Bucket.commit

    def pruned(self, *args):
        checkpoint.prune(url, keep=1)
        commit(self, *args)

    monkeypatch.setattr(Bucket, "commit", pruned)
    checkpoint.save(url, {"x": np.ones(1000)}, 2)
    assert checkpoint.restore(url)["x"].sum() == 1000


def test_damage(url):
    checkpoint.save(url, {"x": np.ones(10000)}, 1)
    bucket = Bucket(url)
    value, _ = bucket.read("commits/1")
    for wrong in (b"", value[:-10], value.replace(b"float64", b"float32"), b"{}", b"[1]"):
        bucket.write("commits/1", wrong)
        with pytest.raises(checkpoint.CheckpointDamagedError, match="commits/1 is damaged"):
            checkpoint.restore(url)
    bucket.write("commits/1", value)
    bucket.delete_below("data/")
    with pytest.raises(checkpoint.CheckpointDamagedError, match=r"the array at \['x'\]"):
        checkpoint.restore(url)


def test_addresses():
    for wrong in ("nope://x/y", "s3://", "file://relative"):
        with pytest.raises(ValueError, match="is no address of an object store"):
            checkpoint.steps(wrong)


def test_stores_that_refuse(tmp_path):
    (tmp_path / "file").write_text("")
    for f in (lambda p: checkpoint.save(p, {"x": 1}, 1), checkpoint.restore, checkpoint.steps):
        with pytest.raises(checkpoint.CheckpointError, match=r"cannot be (read|written)"):
            f(f"file://{tmp_path}/file/run")


def test_trees(url):
    tree = {"w": pc.device_put(X, named("x")), "b": None}
    for value in (1.0, 2.0):
        pytree_serialization.save({**tree, "w": tree["w"] * value}, url)
    assert np.array_equal(pytree_serialization.load(url, named("y"))["w"], 2 * X)
    Bucket(url).write("notes", b"")
    with pytest.raises(RuntimeError, match=r"contains something else than .*: notes"):
        pytree_serialization.save(tree, url)


def test_the_time_of_pending_data_is_read():
    assert _buckets._time_of(_buckets._now()) == pytest.approx(time.time(), abs=5)
    assert _buckets._time_of(b"?") == 0.0
