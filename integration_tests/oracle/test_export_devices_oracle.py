"""Exported functions of several devices beside the reference: shardings, values, errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from jax import export as jax_export

import primax as px
import primax.numpy

MOST = min(len(jax.devices()), len(px.devices()))
NEW = tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 12)
pytestmark = [
    pytest.mark.skipif(MOST < 8, reason="needs 8 devices on both sides"),
    pytest.mark.skipif(not NEW, reason="compared with the newest reference"),
]


def side(lib: Any, export: Any) -> SimpleNamespace:
    kind = lib.sharding.AxisType.Auto
    mesh = lib.make_mesh((2, 4), ("x", "y"), axis_types=(kind,) * 2)

    def divided(*spec, mesh=mesh):
        return lib.sharding.NamedSharding(mesh, lib.P(*spec))

    def over(shape, names):
        devices = np.array(lib.devices()[: np.prod(shape)]).reshape(shape)
        return lib.sharding.Mesh(devices, names, axis_types=(kind,) * len(names))

    def abstract(shape, names, *spec):
        names = tuple(names)
        mesh = lib.sharding.AbstractMesh(shape, names, axis_types=(kind,) * len(names))
        return lib.sharding.NamedSharding(mesh, lib.P(*spec))

    return SimpleNamespace(
        lib=lib, lax=lib.lax, np=lib.numpy, x=export, mesh=mesh, divided=divided, over=over,
        abstract=abstract,
        struct=lambda *spec: lib.ShapeDtypeStruct((8, 4), np.float32, sharding=divided(*spec)),
    )  # fmt: skip


OURS, THEIRS = side(px, px.export), side(jax, jax_export)
BOTH = OURS, THEIRS
A = np.arange(32, dtype=np.float32).reshape(8, 4)


def constrained(s):
    return lambda a: s.lax.with_sharding_constraint(s.lax.sin(a), s.divided("y"))


def region(s):
    return s.lib.shard_map(
        lambda a: s.lax.psum(a, "x"), mesh=s.mesh, in_specs=s.lib.P("x"), out_specs=s.lib.P()
    )


# A function, options of jit, and the argument with which it is exported.
CASES = {
    "inputs": (lambda s: s.lax.sin, lambda s: {"in_shardings": s.divided("x")}, lambda s: A),
    "results": (lambda s: s.lax.sin, lambda s: {"out_shardings": s.divided("y")}, lambda s: A),
    "both axes": (
        lambda s: s.lax.sin,
        lambda s: {"in_shardings": s.divided(("y", "x")), "out_shardings": s.divided(None, "y")},
        lambda s: A,
    ),
    "argument": (
        lambda s: s.lax.sin, lambda s: {}, lambda s: s.lib.device_put(A, s.divided("y"))
    ),
    "type": (lambda s: s.lax.sin, lambda s: {}, lambda s: s.struct("x")),
    "constraint": (constrained, lambda s: {}, lambda s: A),
    "region": (region, lambda s: {}, lambda s: A),
    "abstract mesh of inputs": (
        lambda s: s.lax.sin, lambda s: {"in_shardings": s.abstract((2, 4), "xy", "x")}, lambda s: A
    ),
    "abstract mesh of results": (
        lambda s: s.lax.sin,
        lambda s: {"out_shardings": s.abstract((2, 4), "xy", None, "y")},
        lambda s: A,
    ),
    "abstract mesh of a type": (
        lambda s: lambda a: s.lax.with_sharding_constraint(
            s.lax.sin(a), s.abstract((2, 4), "xy", "y")
        ),
        lambda s: {},
        lambda s: s.lib.ShapeDtypeStruct(
            (8, 4), np.float32, sharding=s.abstract((2, 4), "xy", "x")
        ),
    ),
    "nothing": (lambda s: s.lax.sin, lambda s: {}, lambda s: A),
    "replicated": (lambda s: s.lax.sin, lambda s: {"in_shardings": s.divided()}, lambda s: A),
}  # fmt: skip


def exported(s, case):
    fun, options, argument = CASES[case]
    return s.x.export(s.lib.jit(fun(s), **options(s)))(argument(s))


def specs(shardings):
    return [None if s is None else full(s.spec) for s in shardings]


def full(spec):
    return str((*tuple(spec), *(None,) * (2 - len(tuple(spec)))))


@pytest.mark.parametrize("case", CASES)
def test_devices_and_shardings(case):
    rows = []
    for s in BOTH:
        e = exported(s, case)
        rows.append((
            e.nr_devices, specs(e.in_shardings_jax(s.mesh)), specs(e.out_shardings_jax(s.mesh)),
            e.in_shardings_hlo, e.out_shardings_hlo,
        ))  # fmt: skip
    assert rows[0] == rows[1]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("spec", [("x",), (None, "y"), ()])
def test_calls(case, spec):
    rows = []
    for s in BOTH:
        e = exported(s, case)
        if case != "region" or s is THEIRS:
            e = s.x.deserialize(e.serialize())
        out = s.lib.jit(e.call)(s.lib.device_put(A, s.divided(*spec)))
        rows.append((np.asarray(out), full(out.sharding.spec)))
    assert np.allclose(rows[0][0], rows[1][0])
    assert rows[0][1] == rows[1][1]


@pytest.mark.parametrize("case", [c for c in CASES if c != "region"])
def test_derivatives(case):
    rows = []
    for s in BOTH:
        e = s.x.deserialize(exported(s, case).serialize(vjp_order=1))
        a = s.lib.device_put(A, s.divided("x"))
        grad = s.lib.jit(s.lib.grad(lambda a: e.call(a).sum()))(a)  # noqa: B023
        vjp = e.vjp()
        rows.append((np.asarray(grad), vjp.nr_devices, specs(vjp.out_shardings_jax(s.mesh))))
    assert np.allclose(rows[0][0], rows[1][0])
    assert rows[0][1:] == rows[1][1:]


def test_another_mesh_of_as_many_devices():
    rows = []
    for s in BOTH:
        e = exported(s, "constraint")
        other = s.over((4, 2), ("p", "q"))
        out = s.lib.jit(e.call)(s.lib.device_put(A, s.divided("p", mesh=other)))
        rows.append((np.asarray(out), out.sharding.shard_shape((8, 4))))
    assert np.allclose(rows[0][0], rows[1][0]) and rows[0][1] == rows[1][1]


def test_errors():
    for s in BOTH:
        e = exported(s, "inputs")
        with pytest.raises(ValueError, match="was exported for 8 devices and is called in"):
            e.call(A)
        four = s.over((4,), ("z",))
        with pytest.raises(ValueError, match="was exported for 8 devices and is called in"):
            s.lib.jit(e.call)(s.lib.device_put(A, s.divided("z", mesh=four)))
        for shape, names in (((1,), ("z",)), ((8,), ("z",)), ((2, 4), ("p", "q"))):
            with pytest.raises(ValueError, match="mesh"):
                e.in_shardings_jax(s.over(shape, names))


def test_symbolic_sizes():
    rows = []
    for s in BOTH:
        jitted = s.lib.jit(s.lax.sin, in_shardings=s.divided("x"))
        shape = s.lib.ShapeDtypeStruct(s.x.symbolic_shape("2*n, 4"), np.float32)
        e = s.x.export(jitted)(shape)
        out = s.x.deserialize(e.serialize()).call(s.lib.device_put(A, s.divided("x")))
        rows.append((e.nr_devices, specs(e.in_shardings_jax(s.mesh)), np.asarray(out)))
        with pytest.raises(ValueError, match="divi"):
            odd = s.lib.ShapeDtypeStruct(s.x.symbolic_shape("n, 4"), np.float32)
            s.x.export(jitted)(odd)
    assert rows[0][:2] == rows[1][:2] and np.allclose(rows[0][2], rows[1][2])


def test_artifacts_with_regions_are_trusted_explicitly():
    e = exported(OURS, "region")
    a = px.device_put(A, OURS.divided("x"))
    again = px.export.deserialize(e.serialize(), trusted=True)
    assert np.allclose(again.call(a), A[:4] + A[4:])


def test_explicit_axes():
    rows = []
    for s in BOTH:
        kind = s.lib.sharding.AxisType.Explicit
        mesh = s.lib.make_mesh((2, 4), ("x", "y"), axis_types=(kind,) * 2)
        a = s.lib.device_put(A, s.divided("x", mesh=mesh))
        b = s.lib.device_put(A.T, s.divided(None, "y", mesh=mesh))
        with s.lib.set_mesh(mesh):
            e = s.x.export(s.lib.jit(s.lax.dot))(a, b)
            for each in (e, s.x.deserialize(e.serialize(vjp_order=1))):
                out = s.lib.jit(each.call)(a, b)
                grad = s.lib.jit(s.lib.grad(lambda a: each.call(a, b).sum()))(a)  # noqa: B023
                rows.append((
                    str(s.lib.typeof(out)), full(out.sharding.spec), np.asarray(out),
                    full(grad.sharding.spec),
                ))  # fmt: skip
    for row in rows[1:]:
        assert row[:2] == rows[0][:2] and np.allclose(row[2], rows[0][2])
        assert row[3] == rows[0][3]


def test_functions_of_one_device_in_regions():
    e = px.export.export(px.jit(px.lax.sin))(np.ones((4, 4), np.float32))

    @px.shard_map(mesh=OURS.mesh, in_specs=px.P("x"), out_specs=px.P())
    def f(a):
        return px.lax.psum(e.call(a), "x")

    assert np.allclose(f(A), np.sin(A[:4]) + np.sin(A[4:]))


def test_more_devices_than_the_process_has():
    rows = []
    for s in BOTH:
        sharding = s.abstract((16, 16), "xy", "x", "y")
        shape = s.lib.ShapeDtypeStruct((32, 64), np.float32, sharding=sharding)
        e = s.x.export(s.lib.jit(s.lax.sin), platforms=["tpu"])(shape)
        e = s.x.deserialize(e.serialize())
        rows.append((e.nr_devices, specs(e.in_shardings_jax(sharding.mesh))))
    assert rows[0] == rows[1]


def test_random_keys():
    rows = []
    for s in BOTH:
        keys = s.lib.device_put(s.lib.random.split(s.lib.random.key(0), 8), s.divided("y"))
        e = s.x.deserialize(s.x.export(s.lib.jit(s.lib.random.key_data))(keys).serialize())
        (sharding,) = e.in_shardings_jax(s.mesh)
        rows.append((str(sharding.spec), np.asarray(e.call(keys)).tolist()))
    assert rows[0] == rows[1]
