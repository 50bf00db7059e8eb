"""Bad arguments of `shard_map`, `smap` and `pmap`: each error names the argument and a solution."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_numpy as jnp
from primax_core import lax
from primax_distributed import AxisType, P, pmap, shard_map, smap

X = np.arange(32, dtype=np.float32).reshape(8, 4)
AUTO = (AxisType.Auto,) * 2


@pytest.fixture(scope="module")
def mesh():
    return pd.make_mesh((4, 2), ("x", "y"), axis_types=AUTO)


def same(x):
    return x


CASES = {
    "indivisible": (
        ({"w": X[:6]},), {}, ValueError,
        r"axis 0 of args\[0\]\['w'\] \(parameter 'x'\), which has type float32\[6,4\], has the "
        r"size 6, which is not divisible by 4: P\('x',\) of in_specs divides it along the mesh "
        r"axis 'x' of size 4. Pad it to 8",
    ),
    "unknown": ((X,), {"in_specs": P("z")}, ValueError, r"contains 'z': the mesh has the axes"),
    "doubled": ((X,), {"in_specs": P("x", "x")}, ValueError, "along the mesh axis 'x' twice"),
    "long": ((X,), {"in_specs": P("x", None, None)}, ValueError, "has 3 entries, but args"),
    "scalar": ((1.0,), {}, ValueError, r"rank 0.*For a scalar use P\(\)"),
    "string": ((X,), {"in_specs": "x"}, TypeError, r"got 'x' of type str: write P\('x'\)"),
    "list": ((X,), {"in_specs": [P("x")]}, ValueError, "in_specs of shard_map is not a prefix"),
    "number": ((X,), {"in_specs": (P(), P())}, ValueError, "is not a prefix of the tuple of arg"),
    "automatic": (
        (X,), {"axis_names": {"y"}}, ValueError, "'x' is an axis of the mesh, but not in axis_names"
    ),
    "axis_names": ((X,), {"axis_names": {"z"}}, ValueError, "axis_names of shard_map contains 'z'"),
    "one_name": ((X,), {"axis_names": "x"}, TypeError, r"a set of names, got 'x'.*write \{'x'\}"),
    "results": (
        (X,), {"out_specs": P()}, ValueError,
        r"P\(\) of out_specs says that its result is equal along the mesh axis 'x', but its type "
        r"float32\[2,4\]\{V:x\} says that it may vary",
    ),
    "out_string": ((X,), {"out_specs": "x"}, TypeError, "out_specs of shard_map must be a tree"),
    "out_tree": ((X,), {"out_specs": (P(), P())}, ValueError, "not a prefix of the results"),
    "out_long": ((X,), {"out_specs": P("x", None, None)}, ValueError, "its result has type"),
    "mesh": ((X,), {"mesh": 3}, TypeError, "requires a Mesh or an AbstractMesh"),
    "no_mesh": ((X,), {"mesh": None}, ValueError, "pass mesh=..., or use `with set_mesh"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_shard_map(mesh, name):
    args, changes, kind, text = CASES[name]
    options = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x"), **changes}
    with pytest.raises(kind, match=text):
        shard_map(lambda x: x, **options)(*args)


def test_the_line_of_a_result_that_varies(mesh):
    def f(x):
        y = lax.sin(x)  # this line
        return {"a": lax.psum(x, "x"), "b": y}

    with pytest.raises(ValueError, match=r"its result\['b'\] .*\(sin, .*test_shard_map_errors.py:"):
        shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P())(X)
    out = shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(X)
    assert out["a"].shape == out["b"].shape == (2, 4)


def test_other_errors(mesh):
    with pytest.raises(TypeError, match="requires a callable"):
        shard_map(3, mesh=mesh, in_specs=P(), out_specs=P())
    with pytest.raises(TypeError, match=r"positional arguments only.*keywords x"):
        shard_map(same, mesh=mesh, in_specs=P(), out_specs=P())(x=X)
    with pytest.raises(TypeError, match=r"returned a value of type <class .str.>"):
        shard_map(lambda x: "a", mesh=mesh, in_specs=P(), out_specs=P())(X)
    far = pc.device_put(X, pc.devices()[5])
    with pytest.raises(ValueError, match="Received incompatible devices"):
        shard_map(same, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(far)
    other = pd.make_mesh((2, 4), ("x", "y"), axis_types=AUTO)
    with pd.set_mesh(other), pytest.raises(ValueError, match=r"is not that of the context"):
        shard_map(same, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)
    with pytest.raises(ValueError, match=r"all axes of .* are manual already"):
        shard_map(
            lambda x: shard_map(same, in_specs=P(), out_specs=P())(x),
            mesh=mesh, in_specs=P("x"), out_specs=P("x"),
        )(X)  # fmt: skip


@pytest.mark.parametrize(
    "divide",
    [pc.device_put, lax.with_sharding_constraint, lambda x, s: pc.jit(same, out_shardings=s)(x)],
    ids=["device_put", "with_sharding_constraint", "jit"],
)
def test_divisions_along_manual_axes(mesh, divide):
    def along(name):
        sharding = pd.NamedSharding(mesh, P(None, name))
        of_one = shard_map(
            lambda x: divide(x, sharding), mesh=mesh, in_specs=P("x"), out_specs=P("x"),
            axis_names={"x"},
        )  # fmt: skip
        return pc.jit(of_one)(X)

    assert np.array_equal(along("y"), X)
    with pytest.raises(ValueError, match=r"divides along 'x', but inside of shard_map over this"):
        along("x")


def test_carries_whose_types_differ(mesh):
    def f(x):
        return lax.scan(lambda c, _: (c * jnp.sum(x), None), np.float32(1), None, length=2)[0][None]

    with pytest.raises(TypeError, match=r"manual axis types do not match.*to='varying'"):
        shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)


def test_smap(mesh):
    with pd.set_mesh(mesh):
        f = smap(lambda x: x + lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x")
        assert np.array_equal(f(X), X + np.repeat(np.arange(4), 2)[:, None])

        @smap(in_axes=(0, None), out_axes=1, axis_name="x")
        @smap(in_axes=(1, None), out_axes=0, axis_name="y")
        def g(x, y):
            return lax.transpose(x, (1, 0)) * y

        assert g(X, np.float32(2)).shape == (4, 8)
        for bad, text in (
            (-1, "got -1: pass the number of array axes minus 1"),
            ("x", "array axes and None"),
        ):
            with pytest.raises((TypeError, ValueError), match=text):
                smap(same, in_axes=bad, out_axes=0, axis_name="x")(X)
        with pytest.raises(TypeError, match="is one name"):
            smap(same, in_axes=0, out_axes=0, axis_name=("x", "y"))


def test_pmap():
    total = pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    out = total(X)
    assert np.allclose(out, np.tile(X.sum(0), (8, 1))) and out.sharding.spec == P("i")
    assert len(out.sharding.device_set) == 8
    assert len(pmap(same)(X[:3]).sharding.device_set) == 3
    devices = pc.devices()[4:]
    assert pmap(same, devices=devices)(X[:4]).sharding.device_set == {*devices}
    out = pmap(lambda x, n: x * n, static_broadcasted_argnums=1, out_axes=-1)(X, 3)
    assert np.array_equal(out, 3 * X.T)
    a, b = pmap(lambda x, y: (x + y, lax.psum(x, "i")), "i", in_axes=(1, None), out_axes=(1, None))(
        X, 1.0
    )
    assert np.array_equal(a, X + 1) and np.allclose(b, X.sum(1))
    empty, whole, (last,) = pmap(lambda x: (None, x[0], [x]), out_axes=(0, None, 0))(X[:, :1])
    assert empty is None and whole.shape == () and np.array_equal(last, X[:, :1])
    slope = pc.grad(lambda x: jnp.sum(pmap(lambda x: lax.psum(x**2, "i"), "i")(x)))(X)
    assert np.allclose(slope, 16 * X)
    assert np.allclose(pmap(lambda d, *, s: d["a"] * s)({"a": X}, s=X), X**2)
    x = pc.device_put(X)
    pmap(lambda x: x + 1, donate_argnums=0)(x)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: pmap(same)(np.ones((9, 2))), "maps an axis of size 9, but there are 8 devices"),
        (lambda: pmap(same)(1.0), "has rank 0: pass None for scalars"),
        (lambda: pmap(same, in_axes=None)(X), "requires an argument with a mapped axis"),
        (
            lambda: pmap(lambda x, y: x)(X, X[:4]),
            r"mapped axes of different sizes: \[4, 8\]; among them are axis 0 of an argument of "
            r"shape \(4, 4\), and axis 0 of one of shape \(8, 4\)",
        ),
        (lambda: pmap(same, axis_size=3)(X), "axis_size of pmap is 3, but"),
        (lambda: pmap(same, in_axes="a"), "is a number, None, or a tree of them, got 'a'"),
        (lambda: pmap(same, in_axes=(0, 0))(X), "has 2 entries, but"),
        (lambda: pmap(pmap(same), "j")(X.reshape(2, 4, 4)), "is not that of the context"),
        (lambda: pmap(lambda x, n: x, static_broadcasted_argnums=1)(X, [3]), "Non-hashable static"),
        (lambda: pmap(same, out_axes=4)(X), "out_axes of pmap contains 4"),
    ],
)
def test_errors_of_pmap(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call()


@pytest.mark.parametrize("n, message", [(1, "on 1 device: the mesh has 4"), (8, "on 8 devices: ")])
def test_an_abstract_mesh_of_another_size_than_the_computation(n, message):
    four = pd.AbstractMesh((4,), ("x",), axis_types=(pd.AxisType.Auto,))
    f = pc.jit(pd.shard_map(lax.sin, mesh=four, in_specs=P("x"), out_specs=P("x")))
    mesh = pd.make_mesh((n,), ("x",), devices=pc.devices()[:n], axis_types=(pd.AxisType.Auto,))
    x = pc.device_put(np.ones(8, np.float32), pd.NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match=f"in a computation {message}"):
        f(x)
