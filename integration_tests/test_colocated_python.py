"""Colocated Python on CPU devices of this process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import primax
import primax.numpy as jnp
from primax.experimental import colocated_python as module
from primax.experimental.colocated_python import (
    colocated_cpu_devices,
    colocated_python,
    colocated_python_class,
    serialization,
)

pytest.importorskip("cloudpickle")

DEVICE = primax.devices("cpu")[0]
OTHER = SimpleNamespace(platform="gpu", process_index=0)
OTHER.client = SimpleNamespace(devices=lambda: [*[SimpleNamespace(process_index=0)] * 99, OTHER])


def described(**more: Any) -> Any:
    """The type of ``arange(3)``."""
    sharding = primax.sharding.SingleDeviceSharding(DEVICE)
    return primax.ShapeDtypeStruct(more.get("shape", (3,)), jnp.int32, sharding=sharding)


class Counter:
    """Counts calls."""

    def __init__(self, start: int, *, step: int = 1) -> None:
        self.count = start
        self.step = step

    def add(self, x: Any) -> Any:
        self.count += self.step
        return x + self.count

    def value(self) -> Any:
        return jnp.int32(self.count)


def test_functions() -> None:
    @colocated_python
    def double(x: Any, *, scale: Any) -> Any:
        return {"x": primax.device_put(np.asarray(x) * 2), "none": None, "scale": scale}

    result = double(jnp.arange(3), scale=jnp.ones(()))
    assert result["x"].tolist() == [0, 2, 4] and float(result["scale"]) == 1.0
    assert double.__name__ == "double" and colocated_python is module.colocated_python


def test_a_function_works_on_a_copy_that_is_kept() -> None:
    calls: list[int] = []

    @colocated_python
    def count(x: Any) -> Any:
        calls.append(1)
        return x + len(calls)

    assert [int(count(jnp.int32(0))) for _ in range(3)] == [1, 2, 3] and calls == []
    again = count.specialize(devices=[DEVICE])
    assert int(again(jnp.int32(0))) == 1


def test_keys_devices_and_exceptions() -> None:
    split = colocated_python(lambda k: primax.random.split(k)[0])
    key = primax.random.key(0)
    assert bool(split(key) == primax.random.split(key)[0])

    devices = serialization.DeviceList((DEVICE,))
    put = colocated_python(lambda x: primax.device_put(x, next(iter(devices))))
    assert put(jnp.ones(2)).devices() == {DEVICE}

    def fails(x: Any) -> Any:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        colocated_python(fails)(jnp.ones(2))


def test_declared_types() -> None:
    f = colocated_python(lambda x: x + 1)
    specs = ((described(),), {})
    assert f.specialize(in_specs=specs, out_specs_fn=lambda x: x)(jnp.arange(3)).tolist() == [
        1,
        2,
        3,
    ]
    with pytest.raises(ValueError, match=r"argument \[0\]\[0\] is int32\[2\], but int32\[3\]"):
        f.specialize(in_specs=specs)(jnp.arange(2))
    with pytest.raises(ValueError, match=r"the result is int32\[3\], but int32\[9\]"):
        f.specialize(out_specs_fn=lambda x: described(shape=(9,)))(jnp.arange(3))
    with pytest.raises(ValueError, match="results have the structure"):
        f.specialize(out_specs_fn=lambda x: (x, x))(jnp.arange(3))
    with pytest.raises(ValueError, match="devices was declared before"):
        f.specialize(devices=[DEVICE]).specialize(devices=[DEVICE])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda f: f(np.arange(3)), TypeError, r"argument \[0\]\[0\] is of type ndarray: make"),
        (lambda f: f(), ValueError, r"whose devices say where.*specialize\(devices=...\)"),
        (lambda f: primax.jit(f)(jnp.arange(3)), TypeError, "is traced .*use io_callback"),
        (lambda f: f.specialize(devices=[])(), ValueError, "devices is empty"),
        (lambda f: f.specialize(devices=[OTHER])(), ValueError, "is a gpu device: move the"),
        (lambda f: colocated_cpu_devices([OTHER]), ValueError, "set the option num_cpu_devices to"),
        (lambda f: colocated_python_class(f), TypeError, "expects a class"),
        (lambda f: colocated_python(3), TypeError, "takes a function, got 3"),
        (lambda f: f.specialize(out_specs_fn=3), TypeError, "a function as out_specs_fn, got 3"),
        (lambda f: colocated_python(lambda x: 3)(jnp.ones(3)), ValueError, "result is of type int"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(colocated_python(lambda *args: args))


def test_classes() -> None:
    wrapped: Any = colocated_python_class(Counter)
    assert wrapped.__name__ == "Counter" and wrapped.__doc__ == "Counts calls."
    counter = wrapped(10, step=2)
    assert [int(counter.add(jnp.int32(0))) for _ in range(2)] == [12, 14]
    assert int(counter.value.specialize(devices=[DEVICE])()) == 14
    assert int(wrapped(0).add(jnp.int32(0))) == 1
    with pytest.raises(AttributeError, match="count"):
        counter.count


def test_without_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ModuleNotFoundError, match="pip install cloudpickle"):
        colocated_python(lambda x: x)(jnp.ones(2))


DIVIDED = """
import cloudpickle, pickle
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import *
from jax.experimental.colocated_python import *

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
assert colocated_cpu_devices(mesh) is mesh
x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, PartitionSpec("b")))
first = mesh.devices[0, 0]
count = colocated_python(lambda x: (x * 2, jax.device_put(len(x.addressable_shards), first)))
y, n = count(x)
assert y.sharding == x.sharding and int(n) == 8
whole = NamedSharding(mesh, PartitionSpec())
types = (jax.ShapeDtypeStruct((8,), "f4", sharding=whole), jax.ShapeDtypeStruct((), "i4"))
assert count.specialize(out_specs_fn=lambda x: types)(x)[0].sharding == whole
try:
    colocated_python(lambda x, y: x)(x, jax.device_put(1.0, jax.devices()[1]))
except ValueError as e:
    assert "arguments must be on the same devices" in str(e)
assert x.sharding._device_assignment == tuple(jax.devices()) == x.sharding._internal_device_list
assert pickle.loads(cloudpickle.dumps(lambda: jax))() is jax
print("done")
"""


def test_divided_arrays_under_as_jax() -> None:
    env = {**os.environ, "PRIMAX_NUM_CPU_DEVICES": "8"}
    command = [sys.executable, "-m", "primax.as_jax", "-c", DIVIDED]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_programs_of_jaxlib() -> None:
    from primax.extend.ifrt_programs import ifrt_programs

    program = ifrt_programs.make_plugin_program("{}")
    options = ifrt_programs.make_plugin_compile_options()
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT"):
        DEVICE.client.compile_ifrt_program(program, options)


def test_sharding_names_are_exported() -> None:
    names: dict[str, Any] = {}
    exec("from primax.sharding import *", names)
    assert names["Mesh"] is primax.sharding.Mesh and "annotations" not in names
    assert pickle.loads(pickle.dumps(names["PartitionSpec"]("x"))) is names["PartitionSpec"]("x")
