"""``multihost_utils`` in real processes and in a single one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from several import together

from primax_distributed import multihost_utils

JOIN = """
from primax_distributed import multihost_utils as m, make_mesh, Mesh, NamedSharding
from primax_distributed import PartitionSpec as P
processes.initialize(f'127.0.0.1:{port}', n, rank, freeze_timeout_seconds=4)
"""

MESSAGE_OF_JAXLIB = re.compile(r"\[Gloo\]|connected peer ranks|^[IWE]\d{4} ")


def test_values_of_all_processes():
    outputs, statuses = together(
        JOIN
        + """
import ml_dtypes
x = np.arange(3, dtype=np.int32) + 10 * rank
print(m.process_allgather({"a": x, "b": 2.5 + rank}))
print(m.process_allgather([x, 3.0 + rank], tiled=True))
print(m.process_allgather(np.array([True, False])).tolist())
print(m.process_allgather(np.ones((0, 2), np.float32), tiled=True).shape)
print(*(m.process_allgather(np.ones(2, d)).dtype for d in (ml_dtypes.bfloat16, np.float64)))
print(m.broadcast_one_to_all({"a": x, "c": np.array([True, rank == 0])}))
print(m.broadcast_one_to_all(x, is_source=rank == 1))
print(attempt(lambda: m.broadcast_one_to_all(x, is_source=True)))
print(m.sync_global_devices("x"), attempt(lambda: m.sync_global_devices(f"x{rank}")))
print(m.assert_equal({"a": 3}), attempt(lambda: m.assert_equal({"a": rank}, "steps differ.")))
print(m.reached_preemption_sync_point(1))
with m.live_devices(pc.devices()) as alive:
    print(len(alive))
"""
    )
    assert statuses == [0, 0], outputs
    for rank, output in enumerate(outputs):
        text = "\n".join(x for x in output.splitlines() if not MESSAGE_OF_JAXLIB.search(x))
        assert "[[ 0,  1,  2],\n       [10, 11, 12]]" in text
        assert "'b': array([2.5, 3.5], dtype=float32)" in text
        assert "array([ 0,  1,  2, 10, 11, 12]" in text and "array([3., 4.]" in text
        assert "[[True, False], [True, False]]" in text and "(0, 2)" in text
        assert "bfloat16 float32" in text
        assert "'c': array([ True,  True])" in text and "[10 11 12]" in text
        assert "ValueError: is_source must be true in one process, but it is in 2" in text
        assert f"None AssertionError: sync_global_devices name mismatch ('x{rank}')" in text
        assert "None AssertionError: steps differ. Expected: {'a': array(0" in text
        assert text.endswith("False\n2"), text


def test_parts_of_arrays():
    outputs, statuses = together(
        JOIN
        + """
mesh = Mesh(np.array(pc.devices()), ("x",))
local = np.arange(8.0, dtype=np.float32).reshape(4, 2) + 10 * rank
whole, same = m.host_local_array_to_global_array((local, local * 0), mesh, (P("x"), P()))
print(whole.shape, same.shape, whole.sharding.spec)
back = m.global_array_to_host_local_array((whole, same), mesh, (P("x"), P()))
print(np.array_equal(back[0], local), np.array_equal(back[1], local * 0))
print(m.process_allgather(whole, tiled=True).tolist())
print(attempt(lambda: m.process_allgather(whole)))
print(attempt(lambda: m.host_local_array_to_global_array(local, mesh, None)))
"""
    )
    assert statuses == [0, 0], outputs
    for output in outputs:
        assert "(8, 2) (4, 2) " in output and "('x'" in output
        assert "True True" in output
        assert "[[0.0, 1.0], [2.0, 3.0]" in output and "[16.0, 17.0]]" in output
        assert "is gathered with tiled=True only" in output
        assert "`None` is not a valid input to the pspecs argument" in output


def test_a_notice_of_preemption():
    outputs, statuses = together(
        JOIN
        + """
m.reached_preemption_sync_point(0)
for step in range(1, 200):
    if rank == 1 and step == 5:
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)
    if m.reached_preemption_sync_point(step):
        print("stops at", step)
        break
"""
    )
    assert statuses == [0, 0], outputs
    steps = {o.rpartition("stops at ")[2].strip() for o in outputs}
    assert len(steps) == 1 and steps.pop().isdigit(), outputs


def test_devices_of_a_process_that_dies():
    outputs, _ = together(
        JOIN
        + """
def use():
    with m.live_devices(pc.devices()) as alive:
        collective()
        if rank == 1:
            os._exit(1)
        collective()
try:
    use()
except m.ProcessFailureError as e:
    print(type(e).__name__, [d.process_index for d in e.failed_devices], e)
"""
    )
    assert "ProcessFailureError [1] rank 1 died: its process ended" in outputs[0]


def test_a_single_process():
    x = {"a": np.arange(3, dtype=np.float32), "b": 2.0}
    gathered = multihost_utils.process_allgather(x)
    assert gathered["a"].shape == (1, 3) and gathered["b"].shape == (1,)
    assert multihost_utils.process_allgather(x, tiled=True)["a"].shape == (3,)
    assert multihost_utils.broadcast_one_to_all(x)["b"] == 2
    multihost_utils.sync_global_devices("x")
    multihost_utils.assert_equal(x)
    with pytest.raises(ValueError, match="it is in 0"):
        multihost_utils.broadcast_one_to_all(x, is_source=False)
