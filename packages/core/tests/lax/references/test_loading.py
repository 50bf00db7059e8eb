"""The modules of references are imported when the first reference is created."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import primax_core as px
from primax_core import lax
px.jit(px.grad(lambda x: lax.scan(lambda c, _: (lax.sin(c), None), x, None, length=2)[0]))(1.0)
loaded = [m for m in sys.modules if "references" in m or "discharg" in m or "ref_calls" in m]
assert not loaded, loaded
px.jit(lambda x: px.debug.print("{}", x))(1.0)
px.effects_barrier()
px.jit(lambda r: r[...])(px.new_ref(2.0))
"""


def test_importing_and_computing_do_not_load_them():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1.0\n", "")
