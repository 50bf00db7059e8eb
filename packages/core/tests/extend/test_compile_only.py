"""Compiling for devices that are not here."""

from __future__ import annotations

import os

import numpy as np
import pytest
from processes import run

from primax_core import device_put, devices, jit, lax, pure_callback, serialize_executable
from primax_core._api import compile_only
from primax_core._runtime import absent_devices
from primax_core._runtime.jaxlib_versions import JAXLIB_VERSION
from primax_core.extend import Primitive, abstract, lower, native
from primax_core.extend.runtime import TiledSharding, Tiling

X = np.ones((8, 8), np.float32)
NEW = JAXLIB_VERSION >= (0, 11)
needs_new = pytest.mark.skipif(not NEW, reason="jaxlib before 0.11 compiles for its own CPU only")


def lowered():
    return jit(lambda x: lax.add(lax.mul(x, x), x)).lower(X)


@pytest.mark.skipif(NEW, reason="jaxlib 0.11 compiles for other CPUs")
def test_old_versions_of_jaxlib():
    with pytest.raises(NotImplementedError, match="cannot compile for another CPU: install jaxlib"):
        native.compile_only("cpu", "x86-64-v2")


# An unknown processor ends the process, so the names that are accepted are tried in one.
EVERY_NAME = """
import platform
import numpy as np
from primax_core import jit
from primax_core._runtime import absent_devices
from primax_core.extend import native
from primax_core.extend.runtime import TiledSharding, Tiling

names = absent_devices.X86 if platform.machine() == "x86_64" else absent_devices.ARM
low = jit(lambda x: x * x + x).lower(np.ones(64, np.float32))
sizes = []
for name in names:
    (device,) = native.compile_only("cpu", name)
    sizes.append(len(low.compile(devices=[device]).runtime_executable().serialize()))
print(min(sizes) > 0, len(sizes) == len(names))
"""


@needs_new
def test_every_processor_that_is_accepted():
    assert run(EVERY_NAME).splitlines()[-1] == "True True"


@needs_new
def test_another_cpu():
    own, feature = ("x86-64-v2", "+avx") if os.uname().machine == "x86_64" else ("generic", "+neon")
    (device,) = native.compile_only("cpu", f"{own},{feature}")
    assert repr(device) == f"AbsentDevice(cpu, {own},{feature})"
    compiled = lowered().compile(devices=[device])
    assert "f32[8,8]" in compiled.as_text()
    assert compiled.memory_analysis().argument_size_in_bytes == X.nbytes
    assert b"\x7fELF" in compiled.runtime_executable().serialize()
    for use in (
        lambda: compiled(X),
        lambda: compiled.input_shardings,
        lambda: compiled.output_formats,
        lambda: serialize_executable.serialize(compiled),
    ):
        with pytest.raises(RuntimeError, match=rf"compiled for {own}.*does not have.*not run"):
            use()
    with pytest.raises(ValueError, match="AbsentDevice"):
        device_put(X, device)
    with pytest.raises(ValueError, match=r"for one device, but devices has 2: pass devices\[:1\]"):
        lowered().compile(devices=[device, device])
    rows = TiledSharding(devices()[:2], Tiling.along_mesh((2,), [(0,), ()]))
    over_two = jit(lambda x: x + 1).lower(device_put(X, rows))
    with pytest.raises(ValueError, match=r"for 2 devices, but devices has 1: pass devices\[:2\]"):
        over_two.compile(devices=[device])
    call = jit(lambda x: pure_callback(lambda x: x, x, x)).lower(X)
    with pytest.raises(NotImplementedError, match="calls Python functions"):
        call.compile(devices=[device])


@needs_new
def test_targets_that_are_not_known():
    with pytest.raises(ValueError, match="'i386' is not a processor of this architecture"):
        native.compile_only("cpu", "i386")
    with pytest.raises(ValueError, match=r"'\+nothing' is not a change of features"):
        native.compile_only(
            "cpu", "x86-64,+nothing" if os.uname().machine == "x86_64" else "generic,+nothing"
        )


def test_arguments():
    with pytest.raises(ValueError, match="for cpu, cuda, tpu, not for 'vulkan'"):
        native.compile_only("vulkan", "x")
    with pytest.raises(ValueError, match="takes neither a library nor a topology"):
        native.compile_only("cpu", "x86-64", library="x.so")
    with pytest.raises(ValueError, match="it is the compute capability, such as 'sm_90'"):
        native.compile_only("cuda", "h100")
    with pytest.raises(ImportError, match=r"no library of a plugin at /nothing\.so"):
        native.compile_only("cuda", "sm_90", library="/nothing.so")
    with pytest.raises(TypeError, match=r"takes devices of extend\.native\.compile_only"):
        lowered().compile(devices=devices())


def test_missing_plugins_are_named(monkeypatch):
    monkeypatch.setattr(absent_devices.plugin_start, "installed_version", lambda name: None)
    version = ".".join(map(str, JAXLIB_VERSION))
    with pytest.raises(
        ImportError, match=rf"pip install --no-deps 'jax-cuda13-pjrt=={version}\.\*"
    ):
        native.compile_only("cuda", "sm_90")

    def missing(module, file):
        raise absent_devices.plugins.Unavailable(module)

    monkeypatch.setattr(absent_devices.plugin_start, "beside", missing)
    with pytest.raises(ImportError, match="pip install libtpu, or pass the path of its library"):
        native.compile_only("tpu", "v5e:2x2")


def test_lowering_rules_know_the_target(monkeypatch):
    targets = []
    prim = Primitive("target_seen")
    prim.rule(abstract)(lambda x: x)

    @prim.rule(lower.on("cuda"))
    def _lower(ctx, x):
        targets.append((native.absent_target("cuda"), native.absent_target("tpu")))
        return x

    compiled = []
    monkeypatch.setattr(compile_only, "compile_for", lambda *args: compiled.append(args))
    monkeypatch.setattr(compile_only.compiling, "make_options", lambda *args: None)
    traced = jit(prim.bind).trace(X)
    before = traced.lower(lowering_platforms=("cuda",))
    for target in ("sm_80", "sm_90"):
        before.compile(devices=[native.AbsentDevice("cuda", target, None)])
    assert targets == [(None, None), ("sm_80", None), ("sm_90", None)] and len(compiled) == 2
    assert native.absent_target("cuda") is None


@pytest.mark.skipif("PRIMAX_TEST_CUDA_LIBRARY" not in os.environ, reason="no plugin for CUDA")
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_cuda(target):
    library = os.environ["PRIMAX_TEST_CUDA_LIBRARY"]
    absent = native.compile_only("cuda", target, library=library)
    compiled = lowered().compile(devices=absent)
    assert "f32[8,8]" in compiled.as_text()
    with pytest.raises(RuntimeError, match=rf"compiled for {target} \(cuda\)"):
        compiled(X)
