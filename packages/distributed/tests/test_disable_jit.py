"""`shard_map` and `pmap` with the option `disable_jit`: values, and prints in order."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_numpy as jnp
from primax_core import lax
from primax_distributed import AxisType, P, pmap, shard_map

X = np.arange(16, dtype=np.float32).reshape(8, 2) / 8
Y = np.arange(2, dtype=np.float32)


@pytest.fixture(scope="module")
def mesh():
    return pd.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def total(x, names="x"):
    return lax.psum(x, names)


def branch(x, y):
    return lax.cond(lax.gt(jnp.sum(x), 2.0), lambda: x * 2, lambda: x)


def loop(x, y):
    def step(c, row):
        return c + total(row), c * lax.axis_index("x").astype(np.float32)

    return lax.scan(step, lax.pcast(y, "x", to="varying"), x)[1]


def until(x, y):
    grown = lax.while_loop(lambda c: lax.lt(jnp.sum(total(c)), 40.0),
                           lambda c: c + 1, x)  # fmt: skip
    return lax.while_loop(lambda c: lax.lt(jnp.sum(c), 20.0), lambda c: c + y, grown)


def derivatives(x, y):
    slope = pc.grad(lambda y: jnp.sum(x * lax.sin(y)))(y)  # a total over x
    return pc.vmap(lambda row: total(row * slope))(x)


@pc.custom_vjp
def tripled(x):
    return 3 * x


tripled.defvjp(lambda x: (3 * x, x), lambda x, ct: (total(ct) + x,))


def custom(x, y):
    f = pc.checkpoint(lambda x: lax.sin(tripled(x)))
    return pc.grad(lambda x: jnp.sum(f(x)))(x)


def reference(x, y):
    ref = pc.new_ref(x)
    ref[...] += total(x)
    ref[0] = y
    return ref[...]


def nested(x, y):
    inner = shard_map(lambda x: x * total(x, "y"), in_specs=P(None, "y"), out_specs=P(None, "y"),
                      axis_names={"y"})  # fmt: skip
    return inner(x) + total(x)


def casts(x, y):
    unreduced = lax.pcast(x, "x", to="unreduced")
    return lax.psum(unreduced, "x") + x * lax.pcast(y, "x", to="reduced")


FUNCTIONS = {
    f.__name__: f
    for f in (branch, loop, until, derivatives, custom, reference, casts)
}  # fmt: skip
FUNCTIONS |= {
    "psum": lambda x, y: total(x) * lax.axis_index("x").astype(np.float32),
    "gather": lambda x, y: lax.all_gather(x, "x")[1] + y,
    "permute": lambda x, y: lax.ppermute(x, "x", [(0, 1), (1, 3)]),
    "exchange": lambda x, y: lax.all_to_all(lax.concatenate([x, x], 0), "x", 0, 1, tiled=True),
    "equal": lambda x, y: lax.pmax(y, "x") + x,
    "jitted": lambda x, y: pc.jit(lambda x: total(x) + y)(x) + x,
    "numbers": lambda x, y: 2 * x + lax.pcast(1.0, "x", to="varying"),
}  # fmt: skip


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(mesh, name, check_vma):
    if not check_vma and name in ("derivatives", "casts"):
        pytest.skip("it needs types")
    f = shard_map(
        FUNCTIONS[name], mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=check_vma
    )
    expected = f(X, Y)
    with pc.disable_jit():
        out = f(X, Y)
    assert np.allclose(out, expected, rtol=1e-5)
    assert out.sharding.is_equivalent_to(expected.sharding, 2)
    assert pc.typeof(out) is pc.typeof(expected)


def test_partly_manual_and_nested_regions(mesh):
    f = shard_map(nested, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), axis_names={"x"})
    expected = pc.jit(f)(X, Y)
    with pc.disable_jit():
        assert np.allclose(f(X, Y), expected)


@pytest.mark.parametrize("set_mesh", [True, False])
def test_explicit_axes(set_mesh):
    mesh = pd.make_mesh((4, 2), ("x", "y"))
    x = pc.device_put(X, pd.NamedSharding(mesh, P("x", "y")))
    f = shard_map(lambda x: lax.sin(x) + total(x), mesh=mesh, out_specs=P("x"), axis_names={"x"})
    expected = f(x)
    with pc.disable_jit():
        if set_mesh:
            with pd.set_mesh(mesh):
                out = f(x)
        else:
            out = f(x)
    assert np.allclose(out, expected) and pc.typeof(out) is pc.typeof(expected)
    assert str(pc.typeof(out)) == "float32[8@x,2@y]"


def test_unreduced_arguments_and_results():
    mesh = pd.make_mesh((4, 2), ("x", "y"))
    f = shard_map(
        lambda x: lax.pcast(x, "x", to="unreduced"), mesh=mesh, in_specs=P("x"),
        out_specs=P(unreduced={"x"}),
    )  # fmt: skip
    g = shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P(unreduced={"x"}), out_specs=P())
    x = pc.device_put(X, pd.NamedSharding(mesh, P("x")))
    expected = X.reshape(4, 2, 2).sum(0)
    with pc.disable_jit():
        assert np.allclose(g(f(x)), expected)


def test_prints_are_in_the_order_of_the_positions(mesh, capsys):
    @shard_map(mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    def f(x, y):
        pc.debug.print("y {}", y[1])
        pc.debug.print("x {}", x[0, 0])
        s = total(x)

        def step(c, row):
            pc.debug.print("row {}", row[0])
            return c, None

        lax.scan(step, None, x)
        pc.debug.print("sum {} at {}", s[0, 0], lax.axis_index("x"))
        return x * s

    expected = f(X, Y)
    pc.effects_barrier()
    capsys.readouterr()
    with pc.disable_jit():
        assert np.allclose(f(X, Y), expected)
        assert np.allclose(pc.jit(f)(X, Y), expected)
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(printed) // 2] == printed[len(printed) // 2 :]
    assert printed[: len(printed) // 2] == [
        "y 1.0", "x 0.0", "x 0.5", "x 1.0", "x 1.5",
        "row 0.0", "row 0.5", "row 1.0", "row 1.5", "row 0.25", "row 0.75", "row 1.25", "row 1.75",
        *(f"sum 3.0 at {i}" for i in range(4)),
    ]  # fmt: skip


def test_values_are_known_in_python(mesh):
    printed = []

    @shard_map(mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    def f(x, y):
        printed.append(str(x[0]))
        if total(jnp.sum(x)) > 3:  # equal at all positions
            return x + int(y[1])
        raise AssertionError

    with pytest.raises(pc.errors.TracerBoolConversionError):
        f(X, Y)
    del printed[:]
    with pc.disable_jit():
        assert np.allclose(f(X, Y), X + 1)
    assert printed == [
        "float32[2]{V:x}, whose values are\n  x=0: [0.    0.125]\n  x=1: [0.5   0.625]\n"
        "  x=2: [1.    1.125]\n  x=3: [1.5   1.625]"
    ]


def test_errors(mesh):
    def decide(x):
        return x if jnp.sum(x) > 3 else -x

    f = shard_map(decide, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    g = shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P())
    with pc.disable_jit():
        with pytest.raises(
            pc.errors.TracerBoolConversionError,
            match=r"at the positions along the mesh axis 'x' of a shard_map may differ",
        ):
            f(X)
        with pytest.raises(ValueError, match=r"its type float32\[2,2\]\{V:x\} says that it may"):
            g(X)


def test_pmap(capsys):
    def f(x):
        pc.debug.print("{}", x)
        return x / lax.psum(x, "i")

    x = np.arange(8, dtype=np.float32)
    with pc.disable_jit():
        out = pmap(f, axis_name="i")(x)
    assert np.allclose(out, x / 28)
    assert capsys.readouterr().out.split() == [f"{i}.0" for i in range(8)]
