"""Modules of ``jax`` without a counterpart: they are imported, and what uses them fails by name."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LIBRARY = """
import dataclasses
from typing import Callable
import jax
import jax.experimental.pallas as pl
from jax.experimental.mosaic.gpu import profiler
from jax.experimental.pallas import fuser, mosaic_gpu as plgpu
from jax.experimental.pallas.mosaic_gpu import Layout
import jax.experimental.compute_on

ROWS = plgpu.Layout.WGMMA.reduce(1)
Accumulator = plgpu.Ref | None

@plgpu.inline(arg_types=(Layout[int],))
def native(x: plgpu.Ref) -> Callable[[plgpu.Ref], None]:
    return x

@dataclasses.dataclass
class Tiled(plgpu.Transform):
    size: int = 8
    layout: plgpu.Layout = plgpu.Layout.ROWS(4)

def on_a_gpu():
    return plgpu.kernel(lambda: None)

def fused():
    return fuser.fuse(jax.numpy.sin)

def decorated():
    return native(1)

def tiled():
    return Tiled(4)

def is_one(x):
    return isinstance(x, plgpu.Ref)
"""


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    (folder / "library.py").write_text(LIBRARY)
    script = folder / "program.py"
    script.write_text(textwrap.dedent(code))
    command = [sys.executable, "-m", "primax.as_jax", str(script)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_library_that_does_not_use_them_works(tmp_path):
    done = run(tmp_path, "import library; print(library.is_one(1), library.ROWS)")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "False <absent jax.experimental.pallas.mosaic_gpu.Layout.WGMMA.reduce()>\n"
    )


@pytest.mark.parametrize("call, text", [
    ("on_a_gpu", "has no jax.experimental.pallas.mosaic_gpu.kernel. Kernels for NVIDIA GPUs are"),
    ("fused", "has no jax.experimental.pallas.fuser.fuse. Kernels are not fused"),
    ("decorated", "has no jax.experimental.pallas.mosaic_gpu.inline()()."),
    ("tiled", "has no Tiled. Kernels for NVIDIA GPUs"),
])  # fmt: skip
def test_uses_say_what_to_use_instead(tmp_path, call, text):
    done = run(tmp_path, f"import library\nlibrary.{call}()")
    assert done.returncode == 1
    assert text in done.stderr.splitlines()[-1], done.stderr
    assert "NotImplementedError: Primax" in done.stderr and "library.py" in done.stderr


def test_a_program_cannot_call_them_at_its_top(tmp_path):
    code = """
    from jax.experimental.pallas import mosaic_gpu
    print(mosaic_gpu.kernel(print)(1.0))
    """
    done = run(tmp_path, code)
    assert done.returncode == 1
    assert "Primax has no jax.experimental.pallas.mosaic_gpu" in done.stderr


def test_nothing_remains_after_the_end(tmp_path):
    code = """
    import sys, primax.as_jax, primax.experimental
    import library
    primax.as_jax.uninstall()
    assert not hasattr(primax.experimental, "mosaic")
    try:
        import primax.experimental.mosaic
    except ImportError:
        print("gone")
    """
    done = run(tmp_path, code)
    assert done.stdout == "gone\n", done.stderr


def test_without_as_jax_they_do_not_exist():
    code = "import primax.experimental.mosaic"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "No module named 'primax.experimental.mosaic'" in done.stderr
