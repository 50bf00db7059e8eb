"""Kernels that copy to other devices, in ``shard_map``: on CPUs, and compiled for absent TPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = os.environ.get("PRIMAX_TEST_TPU_LIBRARY")
"""Path of ``libtpu.so``."""

TESTS = Path(__file__).parent.parent / "packages" / "kernels" / "tests"

START = f"""
import sys
sys.path[:0] = [{str(TESTS)!r}]
import numpy as np
import primax
from primax.sharding import Mesh, PartitionSpec
from remote_kernels import REMOTE, operands

def program(name, check):
    case = REMOTE[name]
    count = int(np.prod([*case.axes.values()]))
    devices = np.array(primax.devices()[:count]).reshape([*case.axes.values()])
    mesh, spec = Mesh(devices, tuple(case.axes)), PartitionSpec(tuple(case.axes))
    fun = lambda x: case.call(x[0])[None]
    return primax.jit(
        primax.shard_map(fun, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check)
    )
"""

ON_CPUS = """
for name, case in REMOTE.items():
    x = operands(case)
    for check in (True, False):
        result = np.asarray(program(name, check)(x))
        expected = np.reshape(case.expected(x), result.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
x = operands(REMOTE["all_gather"])
square = lambda name, check: lambda x: (program(name, check)(x) ** 2).sum()
gradient = primax.grad(square("all_gather", False))(x)
np.testing.assert_allclose(gradient, 8 * x, rtol=1e-5)
both = primax.jvp(square("all_gather", True), (x,), (np.ones_like(x),))
np.testing.assert_allclose(both[1], 8 * x.sum(), rtol=1e-4)
places = np.array([0, 1, 10, 11], np.float32)[:, None, None]
x = operands(REMOTE["scaled"])
gradient = primax.grad(square("scaled", True))(x)
np.testing.assert_allclose(gradient, 2 * x * places**2, rtol=1e-5)
try:
    primax.grad(square("all_gather", True))(operands(REMOTE["all_gather"]))
except NotImplementedError as error:
    assert "pass check_vma=False to shard_map" in str(error), error
else:
    raise AssertionError("no error")
print("done")
"""

FOR_TPUS = """
from primax_core.extend import native
devices = native.compile_only("tpu", {target!r}, library={library!r})
for name, case in REMOTE.items():
    x = operands(case)
    if len(x) <= len(devices):
        print(name, flush=True)
        compiled = program(name, True).lower(x).compile(devices=devices[: len(x)])
        assert "tpu_custom_call" in compiled.as_text()
print("done")
"""


def run(code: str) -> None:
    flags = "--xla_force_host_platform_device_count=8"
    env = {**os.environ, "XLA_FLAGS": flags}
    done = subprocess.run(
        [sys.executable, "-c", START + code], capture_output=True, text=True, timeout=280, env=env
    )
    assert done.stdout.endswith("done\n"), done.stdout[-100:] + done.stderr[-3000:]


def test_values_and_derivatives_on_cpus() -> None:
    run(ON_CPUS)


@pytest.mark.parametrize("target", ["v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1"])
def test_compilation_for_tpus(target: str) -> None:
    if not LIBRARY:
        pytest.skip("no plugin for TPUs: set PRIMAX_TEST_TPU_LIBRARY to the path of libtpu.so")
    run(FOR_TPUS.format(target=target, library=LIBRARY))
