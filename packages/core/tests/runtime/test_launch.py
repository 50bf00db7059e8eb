"""The fast path of eager calls: `launch`, and its two inlined copies."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import device_put, jit, lax, pure_callback
from primax_core._api.jit import JitFunction
from primax_core._runtime import launch as module
from primax_core._runtime.launch import launch

X = np.float32([1, 2, 3])


def added(x, y):
    return x + y


def entry_of(function: JitFunction):
    (entry,) = {id(e): e for e in function._entries.values()}.values()
    return entry


def test_inlined_copies_equal_launch():
    x, y = device_put(X), device_put(10 * X)
    compiled = jit(added)
    compiled(x, y)
    (expected,) = launch(entry_of(compiled), [x._buf, y._buf], (x, y), "added")
    for call in (compiled, added):
        call(x, y)
        np.testing.assert_array_equal(call(x, y), expected)
        assert call(x, y)._spec is expected._spec


@pytest.mark.parametrize("call", [jit(added), added, lambda x, y: y - x, lax.add])
def test_all_copies_name_deleted_arrays(call):
    x, y = device_put(X), device_put(10 * X)
    call(x, y)
    gone = device_put(X)
    gone.delete()
    with pytest.raises(RuntimeError, match=r"has been deleted.* It is argument number [01] of"):
        call(gone, y)


@pytest.mark.parametrize("call", [jit(added), added, lambda x, y: y - x, lax.add])
def test_all_copies_collect_garbage(call, monkeypatch):
    import primax_core._api.jit as jit_module
    import primax_core.lax.operators as operators_module

    x, y = device_put(X), device_put(10 * X)
    call(x, y)
    collected = []
    for owner in (module, jit_module, operators_module):
        monkeypatch.setattr(owner, "garbage_is_due", lambda: True)
        monkeypatch.setattr(owner, "collect_garbage", lambda: collected.append(1))
    call(x, y)
    assert collected == [1]


def test_a_failing_operation_runs_once():
    runs = []

    def fail(x):
        runs.append(1)
        if len(runs) > 1:
            raise ValueError("not again")
        return x

    compiled = jit(lambda x: pure_callback(fail, np.zeros(3, np.float32), x))
    x = device_put(X)
    compiled(x).block_until_ready()
    with pytest.raises(Exception, match="not again"):
        compiled(x).block_until_ready()
    assert len(runs) == 2
