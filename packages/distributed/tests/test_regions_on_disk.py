"""A jitted function with a `shard_map` is found in the cache on disk by a later process."""

from __future__ import annotations

import os
import subprocess
import sys

from test_support import wait_until_settled

PROGRAM = """
import sys
import numpy as np
import primax_core as pc
import primax_distributed as pd
from primax_core import lax
from primax_distributed import AxisType, P

mesh = pd.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
x = pc.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), pd.NamedSharding(mesh, P("x")))

@pc.jit
def f(x):
    @pd.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P())
    def total(x):
        return lax.psum(lax.sin(x), ("x",))
    return pc.grad(lambda x: lax.reduce_sum(total(x), (0, 1)))(x)

y = f(x)
eager = pd.shard_map(lambda x: lax.ppermute(x, "x", [(0, 1)]), mesh=mesh, in_specs=P("x"),
                     out_specs=P("x"))(x)
loaded = "jaxlib.mlir" in sys.modules or "jaxlib.mlir.ir" in sys.modules
print(bool(np.allclose(y, np.cos(np.asarray(x)))), np.asarray(eager)[2].tolist(), loaded)
"""


CALLING = """
import os
import numpy as np
import primax_core as pc
import primax_distributed as pd
from primax_core import lax
from primax_distributed import AxisType, P

mesh = pd.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
x = pc.device_put(np.arange(8, dtype=np.float32), pd.NamedSharding(mesh, P("x")))
factor, sizes, hits = np.float32(os.environ["FACTOR"]), [], []
pc.monitoring.register_event_listener(lambda name, **_: hits.append(name.rpartition("/")[2]))

def scaled(x):
    sizes.append(x.size)
    return np.asarray(x) * factor

def called(x):
    return lax.sin(pc.pure_callback(scaled, pc.typeof(x), x))

whole = pc.jit(called)(x)
parts = pc.jit(pd.shard_map(called, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
assert np.allclose(whole, np.sin(factor * np.arange(8)))
assert np.allclose(parts(x), np.sin(factor * np.arange(8)))
print(sorted({*sizes}), hits.count("cache_hits"))
"""


def run(folder, program=PROGRAM, **variables):
    env = {
        **os.environ,
        **variables,
        "PRIMAX_NUM_CPU_DEVICES": "8",
        "PRIMAX_COMPILATION_CACHE_DIR": str(folder),
        "PRIMAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_later_process_compiles_nothing(tmp_path):
    wait_until_settled("primax_core", "primax_distributed")
    assert run(tmp_path) == "True [0.0, 1.0, 2.0, 3.0] True"
    files = {*tmp_path.rglob("*")}
    assert run(tmp_path) == "True [0.0, 1.0, 2.0, 3.0] False"
    assert {*tmp_path.rglob("*")} == files


def test_a_later_process_calls_its_own_functions(tmp_path):
    wait_until_settled("primax_core", "primax_distributed")
    assert run(tmp_path, CALLING, FACTOR="2") == "[2, 8] 0"
    assert run(tmp_path, CALLING, FACTOR="3") == "[2, 8] 2"
