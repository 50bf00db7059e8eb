"""Python functions called by executables on several devices."""

import numpy as np
import pytest

from primax_core import debug, debug_nans, effects_barrier, io_callback, jit, lax, pure_callback
from primax_core._api.transfer import device_put
from primax_core._runtime.devices import devices
from primax_core._runtime.tiled_sharding import TiledSharding
from primax_core._runtime.tilings import Tiling

BLOCKS = TiledSharding(devices()[:4], Tiling.along_mesh((2, 2), [(0,), (1,)]))
X = np.arange(32, dtype=np.float32).reshape(4, 8)


def sharded():
    return device_put(X, BLOCKS)


@pytest.mark.parametrize("call", [pure_callback, io_callback])
def test_the_first_device_calls_with_whole_values(call):
    seen = []

    def sine(x):
        seen.append(x.shape)
        return np.sin(np.asarray(x))

    out = jit(lambda x: call(sine, x, x) * 2)(sharded())
    assert np.allclose(out, np.sin(X) * 2) and seen == [(4, 8)]
    assert out.sharding.num_devices == 4


def test_debug_callbacks_and_their_order():
    seen = []

    def note(name):
        return lambda x: seen.append((name, float(x)))

    def f(x):
        debug.callback(note("sum"), lax.reduce_sum(x, (0, 1)), ordered=True)
        debug.callback(note("max"), lax.reduce_max(x, (0, 1)), ordered=True)
        return x + 1

    g = jit(f)
    g(g(sharded()))
    effects_barrier()
    assert seen == [("sum", 496.0), ("max", 31.0), ("sum", 528.0), ("max", 32.0)]


def test_each_device_calls_with_its_parts(capsys):
    seen = []
    jit(lambda x: debug.callback(lambda u: seen.append(np.array(u)), x, partitioned=True))(
        sharded()
    )
    effects_barrier()
    assert {x.shape for x in seen} == {(2, 4)}
    assert sorted(x[0, 0] for x in seen) == [0, 4, 16, 20]
    jit(lambda x: debug.print("{}", lax.reduce_sum(x, (0, 1)), partitioned=True))(sharded())
    effects_barrier()
    assert capsys.readouterr().out.split() == ["496.0"] * 4
    with pytest.raises(NotImplementedError, match="ordered=True, partitioned=True"):
        jit(lambda x: debug.callback(print, x, ordered=True, partitioned=True))(sharded())


def test_errors_of_callbacks():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(Exception, match="mine"):
        jit(lambda x: pure_callback(fail, x, x))(sharded()).block_until_ready()


def test_errors_of_two_callbacks_end_with_their_call():
    broken = True

    def fail(x):
        if broken:
            raise KeyError("mine")
        return np.asarray(x)

    def second(x):
        return fail(x)

    f = jit(lambda x: pure_callback(fail, x, x) + pure_callback(second, x, x))
    with pytest.raises(Exception, match="mine"):
        f(sharded()).block_until_ready()
    broken = False
    assert np.array_equal(f(sharded()), 2 * X)


def test_nans_are_located():
    with debug_nans(True), pytest.raises(FloatingPointError, match=r"nan.*log"):
        jit(lambda x: lax.log(x - 8))(sharded())
