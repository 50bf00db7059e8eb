"""``reshard``, ``auto_axes``, ``explicit_axes``, and the sharding of results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from primax_core import device_put, devices, grad, jit, lax, make_jaxpr, vmap
from primax_core.extend import check_jaxpr, typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.memory import Space
from primax_distributed import (
    AxisType,
    Mesh,
    NamedSharding,
    P,
    ShardingTypeError,
    UnreducedKind,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
    reshard,
    set_mesh,
)

EXPLICIT, AUTO = AxisType.Explicit, AxisType.Auto
DEVICES = np.array(devices()).reshape(2, 4)
MESH = Mesh(DEVICES, ("x", "y"), (EXPLICIT, EXPLICIT))
MIXED = Mesh(DEVICES, ("x", "y"), (AUTO, EXPLICIT))
f32 = np.float32
VALUES = np.arange(128, dtype=f32).reshape(8, 16)


def sharding(*spec, mesh=MESH):
    return NamedSharding(mesh, P(*spec))


A = device_put(VALUES, sharding("x", "y"))


def kind(x):
    return typeof(x).str_short()


# reshard


@pytest.mark.parametrize("x", [A, VALUES, device_put(VALUES, sharding())])
@pytest.mark.parametrize("spec", [("y", "x"), (), (("x", "y"),), (None, "x")])
def test_reshard(x, spec):
    out = reshard(x, sharding(*spec))
    assert out.sharding.is_equivalent_to(sharding(*spec), 2)
    assert typeof(out).placement is sharding(*spec)._placement(2)
    np.testing.assert_array_equal(np.asarray(out), VALUES)
    staged = make_jaxpr(lambda a: reshard(a, sharding(*spec)))(x)
    check_jaxpr(staged)
    assert staged.out_avals[0].placement is typeof(out).placement


def test_reshard_of_specs_and_trees():
    with set_mesh(MESH):
        a, (b,) = reshard((A, [VALUES]), (P("y"), P(None, "x")))
    assert (kind(a), kind(b)) == ("f32[8@y,16]", "f32[8,16@x]")


def test_reshard_under_transformations():
    with set_mesh(MESH):
        g = grad(lambda a: lax.reduce_sum(lax.sin(reshard(a, P("y"))), (0, 1)))(A)
        assert kind(g) == kind(A)
        np.testing.assert_allclose(np.asarray(g), np.cos(VALUES), atol=1e-5)
        assert kind(vmap(lambda r: reshard(r, P("y")))(device_put(VALUES, sharding("x")))) == (
            "f32[8@x,16@y]"
        )
        assert kind(jit(lambda a: reshard(a, P(None, "y")))(A)) == "f32[8,16@y]"


@pytest.mark.parametrize(
    "spec, error, text",
    [
        (P("z"), ValueError, "'z', which .* does not have"),
        (P("x", "y", None), ValueError, "3 entries for an array of 2 axes"),
        (("x",), (TypeError, ValueError), "x"),
        (None, (TypeError, ValueError), "None"),
    ],
)
def test_errors_of_reshard(spec, error, text):
    with set_mesh(MESH), pytest.raises(error, match=text):
        reshard(A, spec)


def test_reshard_needs_a_mesh_and_explicit_axes():
    with pytest.raises(ValueError, match="no mesh is set"):
        reshard(A, P("x"))
    with set_mesh(MIXED), pytest.raises(ValueError, match="axis 'x' has the type Auto"):
        reshard(VALUES, P("x"))
    with pytest.raises(ValueError, match="size 3, which is not divisible by 2"):
        reshard(np.ones((3, 4), f32), sharding("x"))


# Sharding of results


RESULTS = {
    "broadcast_in_dim": lambda s: lax.broadcast_in_dim(f32(1), (8, 16), (), out_sharding=s),
    "iota": lambda s: lax.broadcasted_iota(f32, (8, 16), 0, out_sharding=s),
    "reshape": lambda s: lax.reshape(A, (8, 16), (1, 0), out_sharding=s),
    "dot_general": lambda s: lax.dot_general(
        A, np.ones((16, 16), f32), (((1,), (0,)), ((), ())), out_sharding=s
    ),
    "reduce_sum": lambda s: lax.reduce_sum(lax.broadcast(A, (2,)), (0,), out_sharding=s),
    "reduce_max": lambda s: lax.reduce_max(lax.broadcast(A, (2,)), (0,), out_sharding=s),
    "rng_bit_generator": lambda s: lax.rng_bit_generator(
        np.zeros(4, np.uint32), (8, 16), out_sharding=s
    )[1],
    "ragged_dot": lambda s: lax.ragged_dot(
        A, np.ones((2, 16, 16), f32), np.array([4, 4]), out_sharding=s
    ),
    "conv_general_dilated": lambda s: lax.conv_general_dilated(
        A, np.ones((16, 16), f32), (), (), out_sharding=s
    ),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("spec", [("y", "x"), (None, "x"), ()])
def test_sharding_of_results(name, spec):
    out = RESULTS[name](sharding(*spec))
    assert out.sharding.is_equivalent_to(sharding(*spec), 2)
    with set_mesh(MESH):
        staged = make_jaxpr(lambda: RESULTS[name](P(*spec)))()
    check_jaxpr(staged)
    assert staged.out_avals[0].placement is sharding(*spec)._placement(2)


@pytest.mark.parametrize("name", RESULTS)
def test_errors_of_the_sharding_of_results(name):
    with set_mesh(MIXED), pytest.raises(ValueError, match="axis 'x' has the type Auto"):
        RESULTS[name](P("x"))
    with pytest.raises(TypeError, match="must be a NamedSharding or a PartitionSpec, got 'x'"):
        RESULTS[name]("x")
    with set_mesh(MESH), pytest.raises(ValueError, match="'x' twice"):
        RESULTS[name](P("x", "x"))


def test_batches_of_the_sharding_of_results():
    rows = device_put(VALUES, sharding("x"))
    ones = np.ones((16, 8), f32)
    numbers = (((0,), (0,)), ((), ()))
    out = vmap(lambda r: lax.dot_general(r, ones, numbers, out_sharding=sharding("y")))(rows)
    assert kind(out) == "f32[8@x,8@y]"
    spread = vmap(lambda r: lax.broadcast_in_dim(r, (4, 16), (1,), out_sharding=sharding("y")))
    assert kind(spread(rows)) == "f32[8@x,4@y,16]"
    assert kind(vmap(lambda r: lax.reshape(r, (4, 4), out_sharding=sharding("y")))(rows)) == (
        "f32[8@x,4@y,4]"
    )


def test_functions_of_other_packages():
    def twice(x):
        return lax.add(x, x)

    with set_mesh(MESH):
        out = with_out_sharding(twice, P("y"), A)
        assert kind(out) == "f32[8@y,16]"
        np.testing.assert_array_equal(np.asarray(out), 2 * VALUES)
        assert kind(jit(lambda a: with_out_sharding(twice, P("y"), a))(A)) == "f32[8@y,16]"


def test_constraints_are_assertions():
    with set_mesh(MESH):
        same = lax.with_sharding_constraint(A, P("x", "y"))
        assert typeof(same) is typeof(A)
        for f in (
            lax.with_sharding_constraint,
            jit(lax.with_sharding_constraint, static_argnums=1),
        ):
            with pytest.raises(AssertionError, match=r"f32\[8@x,16@y\], which is not divided as"):
                f(A, P("y"))
        with pytest.raises(AssertionError, match="Use reshard"):
            lax.with_sharding_constraint(VALUES, P("y"))


# auto_axes, explicit_axes


def test_auto_axes():
    seen = []

    @auto_axes(out_sharding=P("x"))
    def f(a, b):
        seen.append((kind(a), get_abstract_mesh().axis_types))
        return a + b

    other = device_put(VALUES, sharding("y", "x"))
    with set_mesh(MESH):
        for g in (f, jit(f)):
            out = g(A, other)
            assert kind(out) == "f32[8@x,16]"
            np.testing.assert_array_equal(np.asarray(out), 2 * VALUES)
        assert kind(f(A, other, out_sharding=P(None, "y"))) == "f32[8,16@y]"
        n = len(seen)
        f(A, other)
    assert len(seen) == n + 1  # it is evaluated, not compiled
    assert seen[0] == ("f32[8,16]", (AUTO, AUTO))


def test_some_auto_axes():
    seen = []
    f = auto_axes(lambda a: seen.append(kind(a)) or a * 2, axes="x", out_sharding=P("x", "y"))
    with set_mesh(MESH):
        out = f(A)
    assert (kind(out), seen) == (kind(A), ["f32[8,16@y]"])
    np.testing.assert_array_equal(np.asarray(out), 2 * VALUES)


def test_auto_axes_under_transformations():
    f = auto_axes(lambda a: lax.sin(a), out_sharding=P("x", "y"))
    with set_mesh(MESH):
        g = grad(lambda a: lax.reduce_sum(f(a), (0, 1)))(A)
        rows = vmap(auto_axes(lambda a: a * 2, out_sharding=P("y")))(A)
    assert kind(g) == kind(A) and kind(rows) == "f32[8@x,16@y]"
    np.testing.assert_allclose(np.asarray(g), np.cos(VALUES), atol=1e-5)


def test_explicit_axes():
    seen = []

    @explicit_axes(in_sharding=P("x", "y"))
    def f(a):
        seen.append(kind(a))
        return lax.reduce_sum(a, (0,))

    auto = Mesh(DEVICES, ("x", "y"), (AUTO, AUTO))
    with set_mesh(auto):
        for g in (f, jit(f)):
            np.testing.assert_array_equal(np.asarray(g(VALUES)), VALUES.sum(0))
            assert kind(g(VALUES)) == "f32[16]"
    assert set(seen) == {"f32[8@x,16@y]"}


def test_empty_specs_of_calls():
    seen = []
    f = auto_axes(lambda a: a * 2, out_sharding=P("x"))
    g = explicit_axes(lambda a: seen.append(kind(a)) or a * 2, in_sharding=P("x"))
    with set_mesh(MESH):
        assert kind(f(A, out_sharding=P())) == "f32[8,16]"
        assert kind(auto_axes(lambda a: a * 2)(A, out_sharding=P())) == "f32[8,16]"
    with set_mesh(Mesh(DEVICES, ("x", "y"), (AUTO, AUTO))):
        g(VALUES, in_sharding=P())
        explicit_axes(lambda a: seen.append(kind(a)) or a)(VALUES, in_sharding=P())
    assert seen == ["f32[8,16]", "f32[8,16]"]


def test_compiled_functions_are_told_apart():
    def total(a):
        return lax.reduce_sum(a, (0,))

    to_auto = auto_axes(total, axes=(), out_sharding=P("x"))
    to_explicit = explicit_axes(total, axes=(), in_sharding=P("x"))
    with set_mesh(MESH):  # neither changes the types of the axes
        assert kind(to_auto(A)) == "f32[16@x]"
        assert kind(to_explicit(A)) == "f32[16]"


def test_arrays_are_concrete_outside_of_compiled_functions():
    seen = []

    def f(a):
        seen.append(
            (kind(a), a.sharding.spec, a.addressable_shards[3].data.unsafe_buffer_pointer())
        )
        return a * 2 if float(lax.reduce_min(a, (0, 1))) > -1 else a

    pointer = A.addressable_shards[3].data.unsafe_buffer_pointer()
    with set_mesh(MESH):
        assert kind(auto_axes(f, out_sharding=P(None, "x"))(A)) == "f32[8,16@x]"
    auto = Mesh(DEVICES, ("x", "y"), (AUTO, AUTO))
    a = device_put(VALUES, NamedSharding(auto, P("y")))
    with set_mesh(auto):
        assert kind(explicit_axes(f, in_sharding=P("x"))(a)) == "f32[8,16]"
    assert kind(auto_axes(f, axes="x", out_sharding=P("x"))(A)) == "f32[8@x,16]"  # its own mesh
    (first, spec, where), (second, spec_2, _), (third, spec_3, _) = seen
    assert (first, spec, where) == ("f32[8,16]", A.sharding.spec, pointer)  # not copied
    assert (second, spec_2) == ("f32[8@x,16]", P("x", None))
    assert (third, spec_3) == ("f32[8,16@y]", A.sharding.spec)


def test_functions_without_a_hash():
    class Double:
        __hash__ = None

        def __call__(self, a):
            return a * 2

    with set_mesh(MESH):
        out = auto_axes(Double(), out_sharding=P("x"))(A)
    np.testing.assert_array_equal(np.asarray(out), 2 * VALUES)


def test_no_shardings_for_no_arrays():
    def filled():
        return lax.full((8, 2), 1.0, f32, sharding=NamedSharding(get_abstract_mesh(), P("x")))

    create = lambda: explicit_axes(filled)(in_sharding=None)
    with set_mesh(Mesh(DEVICES, ("x", "y"), (AUTO, AUTO))):
        for out in (create(), jit(create)()):
            assert out.shape == (8, 2) and out.sharding.spec[0] == "x"
    with set_mesh(MESH):
        assert auto_axes(lambda a: ())(A, out_sharding=None) == ()


def test_errors_of_auto_and_explicit_axes():
    with set_mesh(MESH):
        with pytest.raises(TypeError, match="auto_axes needs the keyword argument out_sharding"):
            auto_axes(lambda a: a)(A)
        with pytest.raises(TypeError, match="explicit_axes needs the keyword argument in_sharding"):
            explicit_axes(lambda a: a)(A)
        with pytest.raises(TypeError, match="explicit_axes needs the keyword argument in_sharding"):
            explicit_axes(lambda: VALUES)()
        with pytest.raises(TypeError, match="auto_axes needs the keyword argument out_sharding"):
            auto_axes(lambda a: a)(A, out_sharding=None)
        with pytest.raises(ValueError, match="has no axis 'z'"):
            auto_axes(lambda a: a, axes="z", out_sharding=P())(A)
    with pytest.raises(ValueError, match="auto_axes needs a mesh"):
        auto_axes(lambda a: a, out_sharding=P())(VALUES)


@pytest.mark.parametrize("by", [0, 1])
def test_elementwise_operations_that_compile_to_loops_stay_divided(by):
    """The zeta function is one loop; its index and its results keep their own axes."""
    values = VALUES / 100 + 1.5
    x = device_put(values, sharding("x", "y"))
    f = jit(lambda x: lax.zeta(x + 1.5, x))
    assert kind(f(x)) == "f32[8@x,16@y]" and "all-gather" not in f.lower(x).compile().as_text()
    np.testing.assert_allclose(f(x), f(values), 1e-6)
    slope = jit(grad(lambda s, q: lax.reduce_sum(lax.zeta(s, q), (0, 1)), by))(x + 1.5, x)
    assert kind(slope) == "f32[8@x,16@y]"


# Unreduced results


def test_unreduced_results():
    columns, rows = device_put(VALUES, sharding(None, "y")), np.ones((16, 4), f32)
    rows = device_put(rows, sharding("y"))
    numbers = (((1,), (0,)), ((), ()))

    @jit
    def parts(a, b):
        return lax.dot_general(a, b, numbers, out_sharding=P(unreduced={"y"}))

    with set_mesh(MESH):
        out = parts(columns, rows)
        assert kind(out) == "f32[8,4]{U:y}"
        total = jit(lambda a, b: reshard(parts(a, b) + parts(a, b), P("y")))(columns, rows)
        with pytest.raises(TypeError, match="sin is not linear"):
            jit(lambda a, b: lax.sin(parts(a, b)))(columns, rows)
    assert kind(total) == "f32[8@y,4]"
    np.testing.assert_allclose(np.asarray(total), 2 * VALUES @ np.ones((16, 4), f32))


PARTIAL = NamedSharding(MESH, P("x", None, unreduced={"y"}))


@pytest.mark.parametrize("x", [A, VALUES], ids=["array", "numpy"])
def test_whole_values_become_partial_ones(x):
    out = device_put(x, PARTIAL)
    assert kind(out) == "f32[8@x,16]{U:y}" and out.sharding is PARTIAL
    parts = np.array([s.data for s in out.addressable_shards]).reshape(2, 4, 4, 16)
    np.testing.assert_array_equal(parts.sum(1), VALUES.reshape(2, 4, 16))
    np.testing.assert_array_equal(device_put(out, PARTIAL), VALUES)
    np.testing.assert_array_equal(jit(lambda x: device_put(x, PARTIAL))(x), VALUES)


def test_partial_values_are_summed_when_read_or_moved():
    ones = device_put(np.ones((8, 16), f32), sharding("x"))
    parts = [s.data + s.device.id for s in ones.addressable_shards]
    out = make_array_from_single_device_arrays((8, 16), PARTIAL, parts)
    totals = np.repeat([4 + 0 + 1 + 2 + 3, 4 + 4 + 5 + 6 + 7], 4)[:, None] * np.ones(16, f32)
    for read in (np.asarray(out), device_put(out, devices()[3]), device_put(out, sharding("y"))):
        np.testing.assert_array_equal(read, totals)
    assert "10., 10." in repr(out) and out.tolist() == totals.tolist()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(out)), totals)


def test_errors_of_partial_values():
    for make in (
        lambda: make_array_from_callback((8, 16), PARTIAL, VALUES.__getitem__),
        lambda: make_array_from_process_local_data(PARTIAL, VALUES),
    ):
        with pytest.raises(ValueError, match="partial values: make the array without"):
            make()
    with pytest.raises(ValueError, match=r"for result\[0\], which is whole: return reshard"):
        jit(lambda x: [x], out_shardings=PARTIAL)(A)
    with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
        jit(lambda x: x + x, in_shardings=PARTIAL)(VALUES)


@pytest.mark.parametrize("of", [np.complex64, np.int8, np.bool_])
def test_dtypes_of_partial_values(of):
    values = VALUES.astype(of) * (of(1 + 1j) if of is np.complex64 else of(1))
    out = device_put(values, PARTIAL)
    assert out.dtype == of and out.sharding.spec == PARTIAL.spec
    for read in (out, device_put(out, sharding("x")), device_put(out, devices()[1])):
        np.testing.assert_array_equal(read, values)
    with set_mesh(MESH):
        whole = device_put(values, sharding("x"))
        np.testing.assert_array_equal(jit(lambda x: reshard(x, PARTIAL.spec))(whole), values)


def test_memory_of_partial_values():
    out = device_put(VALUES, PARTIAL)
    np.testing.assert_array_equal(device_put(out, Space.Device), VALUES)
    for x, target in (
        (out, Space.Host),
        (out, PARTIAL.with_memory_kind("pinned_host")),
        (VALUES, PARTIAL.with_memory_kind("pinned_host")),
    ):
        with pytest.raises(ValueError, match="'pinned_host': they are computed in the memory of"):
            device_put(x, target)


@pytest.mark.parametrize("reduction", [UnreducedKind.max, UnreducedKind.min])
def test_partial_values_that_are_not_summed(reduction):
    """Whole values do not become such parts: XLA aborts the process."""
    target = NamedSharding(MESH, P("x", None, unreduced={"y"}, unreduced_kind=reduction))
    for x in (A, VALUES, device_put(VALUES, PARTIAL)):
        with pytest.raises(ShardingTypeError, match="only values of which the sum is the whole"):
            device_put(x, target)
    with pytest.raises(ShardingTypeError, match="a traced value cannot become partial values"):
        jit(lambda x: device_put(x, target))(A)
    pytest.importorskip("jaxlib", minversion="0.11", reason="knows sums only")
    parts = [s.data + s.device.id for s in device_put(VALUES, sharding("x")).addressable_shards]
    out = make_array_from_single_device_arrays((8, 16), target, parts)
    added = (3, 7) if reduction is UnreducedKind.max else (0, 4)
    np.testing.assert_array_equal(out, VALUES + np.repeat(np.array(added, f32), 4)[:, None])
    np.testing.assert_array_equal(device_put(out, target), out)


def test_partial_values_that_loops_close_over():
    """XLA would sum them on each device, and add the sum to the part of each device."""
    part, start = device_put(VALUES, PARTIAL), device_put(VALUES, PARTIAL)

    def summed(carry):
        return lax.scan(lambda c, _: (lax.add(c, part), None), carry, None, length=3)[0]

    for f in (summed, jit(summed)):
        out = f(start)
        assert kind(out) == "f32[8@x,16]{U:y}"
        np.testing.assert_array_equal(out, 4 * VALUES)
    counted = lax.fori_loop(0, 3, lambda i, c: lax.add(c, part), start)
    np.testing.assert_array_equal(counted, 4 * VALUES)
    _, out = lax.while_loop(
        lambda c: lax.lt(c[0], 3), lambda c: (lax.add(c[0], 1), lax.add(c[1], part)), (0, start)
    )
    np.testing.assert_array_equal(out, 4 * VALUES)
