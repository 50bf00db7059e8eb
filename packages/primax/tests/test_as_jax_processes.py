"""Processes that begin as `primax.as_jax`: by PRIMAX_AS_JAX in the environment, and in IPython."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import primax.as_jax

installed = pytest.mark.skipif(
    not Path(sysconfig.get_path("purelib"), "primax_as_jax.pth").exists(),
    reason="an editable installation has no file that Python reads when it starts",
)
CODE = "import jax, sys; print(jax.grad(lambda x: x * x)(3.0), 'primax' in sys.modules)"


def python(*arguments: str, **env: str) -> str:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PRIMAX_")}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, text=True, capture_output=True, env={**inherited, **env})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@installed
@pytest.mark.parametrize("value", ["1", "true", "ON"])
def test_variable_installs(value):
    assert python("-c", CODE, PRIMAX_AS_JAX=value) == "6.0 True"


@installed
@pytest.mark.parametrize("value", ["", "0", "off"])
def test_other_values_import_nothing(value):
    code = "import sys; print('primax' in sys.modules)"
    assert python("-c", code, PRIMAX_AS_JAX=value) == "False"


@installed
def test_children_and_workers(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, subprocess, sys\n"
        "import jax\n"
        "def slope(x):\n"
        "    return float(jax.grad(lambda v: v * v)(x))\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(slope, [1.0, 2.0]), flush=True)\n"
        f"    subprocess.run([sys.executable, '-c', {CODE!r}], check=True)\n"
    )
    assert python(str(program), PRIMAX_AS_JAX="1").split("\n") == ["[2.0, 4.0]", "6.0 True"]


def test_ipython_extension():
    code = (
        "import primax.as_jax as e, sys\n"
        "e.load_ipython_extension(None)\n"
        "import jax, primax\n"
        "assert jax.grad is primax.grad\n"
        "e.unload_ipython_extension(None)\n"
        "print('jax' in sys.modules)\n"
    )
    assert python("-c", code) in ("True", "False")
    assert callable(primax.as_jax.load_ipython_extension)
