"""`shard_map`: values, derivatives and batches beside functions of whole arrays."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_numpy as jnp
from primax_core import grad, jit, lax, vmap
from primax_distributed import AxisType, P, shard_map

X = np.arange(32, dtype=np.float32).reshape(8, 4) / 32
W = np.cos(np.arange(12, dtype=np.float32)).reshape(4, 3)


@pytest.fixture(scope="module")
def mesh():
    return pd.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def mean_square(w, x):
    return (lax.sin(lax.dot(x, w)) ** 2).mean()


def over_mesh(mesh, check_vma=True):
    @shard_map(mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=check_vma)
    def loss(w, x):
        return lax.pmean(mean_square(w, x), "x")

    return loss


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("apply", [lambda f: f, jit, lambda f: jit(jit(f))])
def test_values_and_gradients(mesh, check_vma, apply):
    loss = over_mesh(mesh, check_vma)
    assert np.allclose(apply(loss)(W, X), mean_square(W, X), rtol=1e-6)
    for i in (0, 1):
        result = apply(grad(loss, i))(W, X)
        assert np.allclose(result, grad(mean_square, i)(W, X), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("check_vma", [True, False])
def test_second_derivatives(mesh, check_vma):
    loss = over_mesh(mesh, check_vma)
    for outer in (pc.jacfwd, pc.jacrev):
        for inner in (pc.jacfwd, pc.jacrev):
            result = jit(outer(inner(loss)))(W, X)
            assert np.allclose(result, outer(inner(mean_square))(W, X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("check_vma", [True, False])
def test_batches(mesh, check_vma):
    loss = over_mesh(mesh, check_vma)
    many = np.stack([W, 2 * W, 3 * W])
    expected = vmap(mean_square, (0, None))(many, X)
    assert np.allclose(vmap(loss, (0, None))(many, X), expected, rtol=1e-5)
    expected = vmap(grad(mean_square), (0, None))(many, X)
    assert np.allclose(vmap(grad(loss), (0, None))(many, X), expected, rtol=1e-5, atol=1e-7)
    assert np.allclose(
        grad(lambda m: vmap(loss, (0, None))(m, X).sum())(many), expected, rtol=1e-5, atol=1e-7
    )
    flipped = np.moveaxis(many, 0, 2)
    out = jit(vmap(loss, (2, None)))(flipped, X)
    assert np.allclose(out, vmap(mean_square, (0, None))(many, X), rtol=1e-5)


@pytest.mark.parametrize("check_vma", [True, False])
def test_batches_along_a_mesh_axis(mesh, check_vma):
    loss = over_mesh(mesh, check_vma)
    many = np.stack([W, 2 * W, 3 * W, 4 * W])

    def total(f, many, x):
        return vmap(f, (0, None))(many, x).sum()

    def divided(many, x):
        return vmap(loss, (0, None), spmd_axis_name="y")(many, x).sum()

    assert np.allclose(divided(many, X), total(mean_square, many, X), rtol=1e-5)
    for i in (0, 1):
        expected = grad(lambda m, x: total(mean_square, m, x), i)(many, X)
        assert np.allclose(jit(grad(divided, i))(many, X), expected, rtol=1e-4, atol=1e-6)


def test_loops_branches_and_checkpoints(mesh):
    def step(c, x):
        c = lax.cond(lax.gt(c.sum(), np.float32(0)), lambda v: lax.sin(v) + x, lambda v: v * x, c)
        return c, c.sum()

    def local(c, xs):
        c, ys = lax.scan(pc.checkpoint(step), c, xs)
        return c, ys

    @shard_map(mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=(P("x"), P()))
    def divided(c, xs):
        c, ys = local(c, xs)
        return c, lax.psum(ys, "x")

    def whole(c, xs):
        parts = [local(a, b) for a, b in zip(np.split(c, 4), np.split(xs, 4, 1))]
        return np.concatenate([p for p, _ in parts]), sum(y for _, y in parts)

    xs = np.cos(np.arange(24, dtype=np.float32)).reshape(3, 8)
    c = np.sin(np.arange(8, dtype=np.float32))
    for a, b in zip(jit(divided)(c, xs), whole(c, xs)):
        assert np.allclose(a, b, rtol=1e-5)

    def of_parts(c, xs):
        return sum(
            (y**2).sum() + (d**3).sum()
            for d, y in [(lambda r: (r[0], r[1]))(local(a, b)) for a, b in split(c, xs)]
        )

    def split(c, xs):
        return zip(jnp.split(c, 4), jnp.split(xs, 4, 1))

    def over_all(c, xs):
        @shard_map(mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P())
        def f(c, xs):
            d, y = local(c, xs)
            return lax.psum((y**2).sum() + (d**3).sum(), "x")

        return f(c, xs)

    for i in (0, 1):
        result = jit(grad(over_all, i))(c, xs)
        assert np.allclose(result, grad(of_parts, i)(c, xs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("policy", [None, "everything_saveable", "dots_saveable"])
def test_checkpoint_around_a_region(mesh, policy):
    policy = policy and getattr(pc.checkpoint_policies, policy)
    loss = pc.checkpoint(over_mesh(mesh), policy=policy)
    result = jit(grad(loss))(W, X)
    assert np.allclose(result, grad(mean_square)(W, X), rtol=1e-5, atol=1e-7)


def test_custom_derivatives_in_a_region(mesh):
    @pc.custom_jvp
    def double(x):
        return 2 * x

    double.defjvp(lambda p, t: (double(*p), 3 * t[0]))

    @pc.custom_vjp
    def triple(x):
        return 3 * x

    triple.defvjp(lambda x: (triple(x), x), lambda x, ct: (5 * ct,))
    for fun, slope in ((double, 3), (triple, 5)):

        @shard_map(mesh=mesh, in_specs=P("x"), out_specs=P())
        def f(x, fun=fun):
            return lax.psum(fun(x).sum(), "x")

        assert np.array_equal(grad(f)(X), np.full_like(X, slope))


def test_partly_manual_regions(mesh):
    @shard_map(mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    def total(x):
        return lax.psum(x, "x")

    expected = X.reshape(4, 2, 4).sum(0)
    assert np.allclose(jit(total)(X), expected)
    assert np.allclose(grad(lambda x: (total(x) ** 2).sum())(X), np.tile(2 * expected, (4, 1)))


def test_nested_regions(mesh):
    @shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    def outer(x):
        shift = x.sum()

        @shard_map(in_specs=P(None, "y"), out_specs=P())
        def inner(x):
            return lax.psum(x * shift, ("y",))

        return inner(x) + lax.psum(x, "x").sum()

    def whole(x):
        parts = jnp.split(x, 4)
        out = []
        for p in parts:
            a, b = jnp.split(p, 2, 1)
            out.append((a + b) * p.sum() + x.sum())
        return jnp.concatenate(out)

    assert np.allclose(jit(outer)(X), whole(X), rtol=1e-5)
    result = jit(grad(lambda x: (outer(x) ** 2).sum()))(X)
    assert np.allclose(result, grad(lambda x: (whole(x) ** 2).sum())(X), rtol=1e-4)


def test_values_that_a_function_closes_over(mesh):
    table = pc.device_put(X, pd.NamedSharding(mesh, P(None, "y")))

    def f(w, x):
        @shard_map(mesh=mesh, in_specs=P("x"), out_specs=P())
        def g(x):
            return lax.psum((x * w).sum() + table.sum(), "x")

        return g(x)

    w = np.float32(3)
    assert np.allclose(f(w, X), (X * 3).sum() + 4 * X.sum())
    assert np.allclose(grad(f)(w, X), X.sum())
    assert np.allclose(vmap(f, (0, None))(np.arange(3.0), X)[2], 2 * X.sum() + 4 * X.sum())


def test_decorators_and_partial(mesh):
    @shard_map(mesh=mesh, in_specs=(P("x"), P()), out_specs={"s": P("x")})
    def f(x, y):
        """Documented."""
        return {"s": x + y["b"]}

    assert f.__name__ == "f" and "Documented" in f.__doc__
    assert np.array_equal(f(X, {"b": np.float32(1)})["s"], X + 1)
    assert f(X, {"b": np.float32(1)})["s"].sharding.spec == P("x")


def test_meshes_of_the_context(mesh):
    def f(x):
        assert pd.get_abstract_mesh().manual_axes == ("x", "y")
        return lax.psum(x, ("x", "y"))

    with pd.set_mesh(mesh):
        total = shard_map(f, in_specs=P("x", "y"), out_specs=P())
        assert np.allclose(total(X), X.reshape(4, 2, 2, 2).sum((0, 2)))
        assert np.allclose(jit(total)(X), X.reshape(4, 2, 2, 2).sum((0, 2)))
    other = pd.Mesh(mesh.devices[::-1], mesh.axis_names, axis_types=mesh.axis_types)
    where = shard_map(lambda: lax.axis_index("x")[None], in_specs=(), out_specs=P("x"))
    for m in (mesh, other):
        with pd.set_mesh(m):
            out = where()
            assert out.tolist() == [0, 1, 2, 3] and out.sharding.mesh is m


def test_specs_in_types():
    mesh = pd.make_mesh((4, 2), ("x", "y"))
    x = pc.device_put(X, pd.NamedSharding(mesh, P("x", "y")))
    types = []

    def f(x):
        types.append(str(pc.typeof(x)))
        return x

    assert str(pc.typeof(shard_map(f, mesh=mesh, out_specs=P("x", "y"))(x))) == "float32[8@x,4@y]"
    out = shard_map(f, mesh=mesh, out_specs=P("x"), axis_names={"x"})(x)
    assert str(pc.typeof(out)) == "float32[8@x,4@y]" and np.array_equal(out, X)
    assert types == ["float32[2,2]{V:(x,y)}", "float32[2,4@y]{V:x}"]
    with pytest.raises(ValueError, match=r"differs from the type of args\[0\] \(parameter 'x'\)"):
        shard_map(f, mesh=mesh, in_specs=P("y", "x"), out_specs=P("x"))(x)
    auto = pd.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    with pytest.raises(TypeError, match="can only be left out for mesh axes of the type Explicit"):
        shard_map(f, mesh=auto, out_specs=P("x"))(X)


def test_references_and_callbacks(mesh):
    @shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def counted(x):
        ref = pc.new_ref(lax.pcast(jnp.zeros(x.shape), "x", to="varying"))
        ref[...] += x
        return ref[...] + lax.psum(ref[...], "x")

    assert np.allclose(counted(X), X + np.tile(X.reshape(4, 2, 4).sum(0), (4, 1)))
    wrong = shard_map(
        lambda x: pc.new_ref(jnp.zeros(x.shape)).__setitem__(..., x), mesh=mesh, in_specs=P("x"),
        out_specs=P(),
    )  # fmt: skip
    with pytest.raises(TypeError, match="to the initial value of the reference"):
        wrong(X)

    @shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def on_host(x):
        return pc.pure_callback(np.sin, pc.ShapeDtypeStruct(x.shape, x.dtype), x)

    assert np.allclose(on_host(X), np.sin(X))


def test_abstract_meshes(mesh):
    f = shard_map(lambda x: x, mesh=mesh.abstract_mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="which has no devices, and no argument is on 8 devices"):
        f(X)
    assert np.array_equal(f(pc.device_put(X, pd.NamedSharding(mesh, P()))), X)
