"""Names for several devices in programs without the wheel that defines them."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
from pathlib import Path
others = [p for p in sys.path if not Path(p, "primax_distributed").exists()]
sys.path[:] = others if any(Path(p, "primax").exists() for p in others) else sys.path
import primax
"""
LINE = "primax_distributed is not installed; get it with: pip install 'primax[distributed]'"


def printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def raised(statement: str) -> str:
    code = "try:\n    exec({!r})\nexcept Exception as e:\n    print(type(e).__name__, e)"
    return printed(code.format(statement))


@pytest.mark.parametrize("name", ["make_mesh", "P", "NamedSharding", "set_mesh"])
def test_attributes_of_primax(name):
    text = f"AttributeError module 'primax' has no attribute {name!r}: {LINE}\n"
    assert raised(f"primax.{name}") == text
    assert printed(f"print(hasattr(primax, {name!r}))") == "False\n"
    assert raised(f"from primax import {name}").startswith(
        f"ImportError cannot import name '{name}'"
    )


def test_attributes_of_sharding():
    assert LINE in raised("primax.sharding.AxisType")
    assert raised("primax.sharding.nothing") == (
        "AttributeError module 'primax.sharding' has no attribute 'nothing'\n"
    )
    assert (
        printed("print([n for n in dir(primax.sharding) if n[0] == 'A'])") == "['AbstractMesh']\n"
    )


def test_classes_for_annotations():
    code = (
        "from primax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec\n"
        "assert not isinstance(1, (AbstractMesh, Mesh, NamedSharding))\n"
        "def f(mesh: Mesh, sharding: NamedSharding | None = None): ...\n"
        "print(PartitionSpec('x', None), primax.typeof(1.0).sharding.spec)"
    )
    assert printed(code) == "P('x', None) P()\n"
    for call in ("Mesh([], ())", "AbstractMesh((2,), ('x',))", "NamedSharding(1, 2)"):
        assert (
            raised(f"primax.sharding.{call}") == f"ImportError {call.partition('(')[0]}: {LINE}\n"
        )


def test_modules():
    assert LINE in raised("import primax.experimental.mesh_utils")
    assert LINE in raised("import primax.distributed")
    assert LINE in raised("from primax.experimental import multihost_utils")
    make = "from primax.experimental import topologies as t\nt.make_mesh({}, (1,), ('x',))"
    assert LINE in raised(make.format("t.get_attached_topology()"))


def test_private_modules_of_the_reference():
    install = "import primax.as_jax; primax.as_jax.install()\n"
    assert LINE in raised(install + "from jax._src import mesh; mesh.Mesh([], ())")
    assert LINE in raised(install + "import jax; jax.make_mesh")
    assert LINE in raised(
        install + "import jax._src.mesh as m; m.thread_resources.env.physical_mesh"
    )
