"""Callbacks of functions that are called under guards."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.errors import JaxRuntimeError

X = np.array([0.5, 2.0], np.float32)
LEVELS = ["allow", "log", "disallow", "log_explicit", "disallow_explicit"]


def doubled(x):
    return px.pure_callback(lambda x: np.asarray(x) * 2, x, x)


@pytest.mark.parametrize("level", LEVELS)
def test_arguments_of_callbacks_are_not_transfers(level, capsys):
    def both(x):
        px.debug.print("{}", x)
        return doubled(x)

    f, x = px.jit(both), px.device_put(X)
    with px.transfer_guard(level):
        out = px.block_until_ready(f(x))
        px.effects_barrier()
    assert out.tolist() == [1.0, 4.0]
    assert capsys.readouterr().out == "[0.5 2. ]\n"


@pytest.mark.parametrize("level", LEVELS)
def test_a_callback_that_computes_is_guarded(level):
    """A callback runs with the settings of the call."""
    f = px.jit(lambda x: px.pure_callback(lambda x: lax.neg(np.asarray(x)), x, x))
    x = px.device_put(X)
    with px.transfer_guard(level):
        if not level.startswith("disallow"):
            assert f(x).tolist() == [-0.5, -2.0]
            return
        with pytest.raises(JaxRuntimeError, match="isallowed host-to-device transfer") as e:
            px.block_until_ready(f(x))
    assert e.value.__cause__ is not None
    assert f(x).tolist() == [-0.5, -2.0]  # a later call works


def test_no_tracing():
    f = px.jit(doubled)
    f(X)
    with px.no_tracing():
        assert f(X).tolist() == [1.0, 4.0]
        with pytest.raises(RuntimeError, match="no_tracing"):
            f(X[:1])
    assert f(X[:1]).tolist() == [1.0]


@pytest.mark.parametrize("call", ["pure_callback", "io_callback"])
def test_checking_leaks(call):
    inner = px.jit(lambda x: x * 3)
    with px.checking_leaks():
        f = px.jit(lambda x: getattr(px, call)(lambda x: np.asarray(inner(x)), x, x))
        assert float(f(np.float32(2))) == 6.0
        with pytest.raises(Exception, match="Leaked trace"):
            px.jit(lambda x: getattr(px, call)(lambda y: np.asarray(x), x, x))(1.0)
