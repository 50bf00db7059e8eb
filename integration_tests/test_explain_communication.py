"""``explain`` of programs on a mesh: the collectives, their axes and their lines."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import numpy as np
import primax
from primax import lax, explain
from primax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

mesh = primax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
put = lambda shape, *spec: primax.device_put(
    np.ones(shape, np.float32), NamedSharding(mesh, P(*spec))
)
x, w, v = put((16, 64), "data"), put((64, 32), None, "model"), put((32, 64), "model")


def show(report):
    for c in report.collectives:
        print(c.kind, c.along, c.bytes, [ln.text for ln in c.lines], c.operations, c.added)


def loss(w, v, x):
    h = x @ w
    y = h @ v
    return (y * y).sum()


print("gradients")
show(explain(primax.grad(loss, (0, 1)), w, v, x))


def by_hand(x):
    a = lax.psum(x, "data")
    b = lax.psum(x * 2, "data")
    c = lax.ppermute(x, "model", [(0, 1), (1, 0)])
    d = lax.all_gather(c, ("data", "model"), tiled=True)
    return a, b, c, d


print("by hand")
specs = P(None, "model"), P(None, "model"), P("data", "model"), P()
mapped = primax.shard_map(by_hand, mesh=mesh, in_specs=P("data", "model"), out_specs=specs,
                          check_vma=False)
show(explain(mapped, np.ones((16, 64), np.float32)))

print("reversed devices")
other = Mesh(mesh.devices[::-1, ::-1].T, ("a", "b"))
z = primax.device_put(np.ones((16, 8), np.float32), NamedSharding(other, P("a", "b")))
show(explain(lambda z: z.sum(0), z))

print("results")
show(explain(primax.jit(lambda x: x + 1, out_shardings=NamedSharding(mesh, P())), x))

with primax.set_mesh(primax.make_mesh((4, 2), ("r", "s"))):
    print("explicit")
    show(explain(lambda x: primax.reshard(x, P()), primax.device_put(np.ones((8, 8)), P("r"))))
"""

EXPECTED = """\
gradients
all-reduce model 1024 ['y = h @ v'] ('dot_general',) True
all-reduce data 8192 ['h = x @ w', 'y = h @ v'] ('dot_general',) True
by hand
all-reduce data 1024 ['a = lax.psum(x, "data")', 'b = lax.psum(x * 2, "data")'] ('psum',) False
collective-permute model 512 ['c = lax.ppermute(x, "model", [(0, 1), (1, 0)])'] ('ppermute',) False
all-gather data, model 4096 ['d = lax.all_gather(c, ("data", "model"), tiled=True)'] \
('all_gather',) False
reversed devices
all-reduce a 8 ['show(explain(lambda z: z.sum(0), z))'] ('reduce_sum',) True
results
all-gather data 4096 [] () None
explicit
"""


def test_collectives_of_programs_on_a_mesh(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    env = {**os.environ, "PRIMAX_NUM_CPU_DEVICES": "8", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    *lines, explicit = done.stdout.splitlines()
    assert blocks(lines) == blocks(EXPECTED.splitlines())
    assert explicit.startswith("all-gather r ")


def blocks(lines):
    """The lines of each title, in any order: XLA chooses the order of independent collectives."""
    titles, block = {}, []
    for line in lines:
        if " " not in line or line in ("by hand", "reversed devices"):
            block = titles[line] = []
        else:
            block.append(line)
    return {title: sorted(block) for title, block in titles.items()}
