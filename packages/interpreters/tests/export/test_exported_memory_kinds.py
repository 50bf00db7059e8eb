"""Memory kinds of the results of exported functions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import primax_core as pc
from primax_core import jit, lax
from primax_core.errors import InvalidArtifactError
from primax_core.extend.portable_modules import PortableSharding
from primax_core.memory import Space
from primax_interpreters import export

X = np.arange(6, dtype=np.float32).reshape(2, 3)
HERE = pc.device_put(0.0).sharding
KINDS = [m.kind for m in pc.devices()[0].addressable_memories()]
pytestmark = pytest.mark.skipif("pinned_host" not in KINDS, reason="there is no such memory")
HOST = HERE.with_memory_kind("pinned_host")


def kind(x):
    return x.sharding.memory_kind


FUNCTIONS = {
    "out_shardings": jit(lambda x: (lax.sin(x), x), out_shardings=(HOST, None)),
    "device_put": jit(lambda x: (pc.device_put(lax.sin(x), HOST), x)),
    "space": jit(lambda x: (pc.device_put(lax.sin(x), Space.Host), x)),
    "nested": jit(lambda x: jit(lambda x: (pc.device_put(lax.sin(x), HOST), x))(x)),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_in_host_memory(name, wrap):
    f = FUNCTIONS[name]
    expected = [*map(kind, f(X))]
    e = export.export(f)(X)
    for program in (e, export.deserialize(e.serialize())):
        outs = wrap(program.call)(X)
        assert [*map(kind, outs)] == expected == ["pinned_host", HERE.memory_kind]
        np.testing.assert_array_equal(outs[0], f(X)[0])


def test_later_computations_and_exports():
    e = export.export(FUNCTIONS["device_put"])(X)
    np.testing.assert_allclose(jit(lambda x: e.call(x)[0] * 2)(X), 2 * np.sin(X), rtol=1e-6)
    again = export.export(jit(e.call))(X)
    assert kind(export.deserialize(again.serialize()).call(X)[0]) == "pinned_host"


def test_values_that_return_to_the_device():
    f = jit(lambda x: pc.device_put(pc.device_put(x, HOST), HERE) + 1)
    assert kind(export.export(f)(X).call(X)) == HERE.memory_kind


def test_derivatives():
    e = export.export(FUNCTIONS["out_shardings"])(X)
    e = export.deserialize(e.serialize(vjp_order=1))
    slope = pc.grad(lambda x: lax.reduce_sum(e.call(x)[0], (0, 1)))(X)
    np.testing.assert_allclose(slope, np.cos(X), rtol=1e-6)


def test_shapes_that_are_not_known():
    (shape,) = export.symbolic_args_specs((X,), ("a, 3",))
    e = export.export(FUNCTIONS["device_put"])(shape)
    assert kind(export.deserialize(e.serialize()).call(X)[0]) == "pinned_host"


@pytest.mark.parametrize(
    "wrong, message",
    [
        (PortableSharding((), ((), ()), "attic"), "unknown memory kind 'attic'"),
        (PortableSharding((("a", 2),), ((), ()), "pinned_host"), "does not have 1 devices"),
    ],
)
def test_damaged_artifacts(wrong, message):
    e = export.export(jit(lax.sin))(X)
    changed = dataclasses.replace(e, _out_named_shardings=(wrong,))
    with pytest.raises(InvalidArtifactError, match=message):
        export.deserialize(changed.serialize())
