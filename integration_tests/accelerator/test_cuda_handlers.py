"""Handlers for CUDA: compiled by nvcc, called in programs for GPUs, and run if there is one.

Run by ``nox -s cuda_handlers``, which installs CUDA's plugin.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
from importlib.util import find_spec

import pytest

if shutil.which("nvcc") is None:
    pytest.skip("install the CUDA toolkit (nvcc): handlers are compiled", allow_module_level=True)
if find_spec("jax_cuda13_plugin") is None:
    pytest.skip("run nox -s cuda_handlers, which installs the plugin", allow_module_level=True)
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

from native_examples import library

from primax_ffi._versions import installed_version, version_of

HAS_GPU = pathlib.Path("/dev/nvidia0").exists()
NAMES = ["examples_rms_norm", "examples_rms_norm_backward"]


def run(code, **environment):
    """The output of a program in a new process, on the CPU unless ``environment`` says more."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_library_has_the_handlers():
    import ctypes

    native = ctypes.CDLL(str(library.cuda_path()))
    for name in NAMES:
        assert version_of(getattr(native, name)) == installed_version()
    if cuobjdump := shutil.which("cuobjdump"):
        command = [cuobjdump, "--list-elf", "--list-ptx", str(library.cuda_path())]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert all(target in listed for target in ("sm_80.cubin", "sm_90.cubin", "sm_80.ptx"))


COMPILE = """
    import numpy as np
    import primax
    import primax.numpy as jnp
    from native_examples.rms_norm_cuda import rms_norm
    from primax_core.extend import native

    x, w = np.ones((4, 6), np.float32), np.ones(6, np.float32)
    gradient = primax.jit(primax.grad(lambda x, w: jnp.sum(rms_norm(x, w) ** 2), (0, 1)))
    lowered = gradient.trace(x, w).lower(lowering_platforms=("cuda",))
    compiled = lowered.compile(devices=native.compile_only("cuda", "{target}"))
    for name in {names}:
        assert f"@{{name}}(" in lowered.as_text()
        assert f'custom_call_target="{{name}}"' in compiled.as_text()
    print(gradient(x, w)[0].shape)  # on the CPU, under the same names
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_programs_for_gpus_are_compiled(target):
    assert run(COMPILE.format(target=target, names=NAMES), PRIMAX_PLATFORMS="cpu") == "(4, 6)"


def test_a_handler_without_a_version_for_gpus_is_an_error():
    out = run(
        """
        import numpy as np
        import primax
        from native_examples.sort_rows import sort_rows

        try:
            traced = primax.jit(sort_rows).trace(np.ones((4, 6), np.float32))
            traced.lower(lowering_platforms=("cuda",))
        except NotImplementedError as error:
            print(error)
        """,
        PRIMAX_PLATFORMS="cpu",
    )
    assert "'examples_sort_rows' is registered for cpu, but called on cuda: register it with" in out


RUN = """
    import numpy as np
    import primax
    import primax.numpy as jnp
    from native_examples.rms_norm_cuda import rms_norm

    cpu, gpu = primax.devices("cpu")[0], primax.devices("gpu")[0]
    rng = np.random.default_rng(0)

    def close(a, b):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)

    loss = lambda x, w: jnp.sum(jnp.sin(rms_norm(x, w)))
    for shape in [(6,), (4, 6), (3, 2, 1000), (0, 6), (1000, 1)]:
        operands = [rng.normal(size=s).astype(np.float32) for s in (shape, shape[-1:])]
        on = {d: [primax.device_put(v, d) for v in operands] for d in (cpu, gpu)}
        f = primax.jit(rms_norm)
        assert f(*on[gpu]).devices() == {gpu}
        close(f(*on[gpu]), f(*on[cpu]))
        gradient = primax.jit(primax.grad(loss, (0, 1)))
        for a, b in zip(gradient(*on[gpu]), gradient(*on[cpu])):
            close(a, b)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((5, 4, 6), (5, 6)))
    mapped = primax.jit(primax.vmap(primax.grad(loss, (0, 1))))
    for a, b in zip(*(mapped(*(primax.device_put(v, d) for v in (x, w))) for d in (cpu, gpu))):
        close(a, b)
    print("equal")
"""


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA device on this machine")
def test_values_and_gradients_agree_with_the_cpu():
    assert run(RUN) == "equal"
