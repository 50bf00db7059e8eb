"""`custom_partitioning`: shardings, values, callbacks and messages, beside functions of arrays."""

from __future__ import annotations

import re

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
from primax_core import jit, lax, vmap
from primax_core.extend import UnsupportedRule
from primax_core.extend.runtime import TiledSharding
from primax_distributed import AxisType, NamedSharding, P
from primax_distributed.custom_partitioning import (
    ArrayMapping,
    SdyShardingRule,
    custom_partitioning,
)

MESH = pd.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
A = np.arange(32, dtype=np.float32).reshape(8, 4)
B = (np.arange(64, dtype=np.float32) % 7 - 3).reshape(4, 16)
RULE = "i j, j k -> i k"


def divided(*spec):
    return NamedSharding(MESH, P(*spec))


def put(x, *spec):
    return pc.device_put(x, divided(*spec))


def as_propagated(mesh, args, result):
    return mesh, lax.dot, result.sharding, tuple(a.sharding for a in args)


def product(partition=as_propagated, rule=RULE, fun=lax.dot, **options):
    """A product of matrices, and the list of the specs that `partition` received."""
    specs = []

    def watched(*args):
        *_, operands, result = args
        specs.append((*(a.sharding.spec for a in operands), result.sharding.spec))
        return partition(*args)

    f = custom_partitioning(lambda a, b: fun(a, b))
    f.def_partition(watched, sharding_rule=rule, **options)
    return f, specs


def collectives(f, *args):
    text = jit(f).lower(*args).compile().as_text()
    kinds = ("all-gather", "all-reduce", "all-to-all", "collective-permute")
    return {k for k in kinds if re.search(rf"{k}[.0-9]* = |{k}\(", text)}


@pytest.mark.parametrize("wrap", [lambda f: f, jit, lambda f: jit(lambda *a: jit(f)(*a))])
def test_shardings_are_propagated(wrap):
    f, specs = product()
    out = wrap(f)(put(A, "x"), put(B, None, "y"))
    assert specs == [(P("x", None), P(None, "y"), P("x", "y"))]
    assert out.sharding.spec == P("x", "y")
    assert np.allclose(out, A @ B)
    assert collectives(f, put(A, "x"), put(B, None, "y")) == set()


def test_shardings_are_propagated_backward():
    f, specs = product()
    out = jit(f, out_shardings=divided("x", "y"))(A, B)
    assert specs == [(P("x", None), P(None, "y"), P("x", "y"))]
    assert np.allclose(out, A @ B)


def test_a_sharding_constraint_is_seen():
    f, specs = product()
    out = jit(lambda a, b: f(lax.with_sharding_constraint(a, divided("y")), b))(A, B)
    assert specs == [(P("y", None), P(None, None), P("y", None))]
    assert np.allclose(out, A @ B)


def test_a_loop_is_seen():
    f, specs = product()
    eye = np.eye(4, dtype=np.float32)

    @jit
    def looped(a):
        return lax.fori_loop(0, 3, lambda i, a: f(a, eye), a)

    out = looped(put(A, "x"))
    assert specs == [(P("x", None), P(None, None), P("x", None))]
    assert np.allclose(out, A)


def test_each_call_of_a_jitted_function_has_its_own_shardings():
    f, specs = product()
    g = jit(f)
    out = jit(lambda a, b, c: (g(a, b), g(c, b)))(put(A, "x"), B, put(A, "y"))
    assert [s[0] for s in specs] == [P("x", None), P("y", None)]
    assert all(np.allclose(o, A @ B) for o in out)


def test_calls_in_a_row_branches_and_checkpoint():
    f, _ = product()
    eye = np.eye(4, dtype=np.float32)

    @jit
    def program(p, a, b):
        a = lax.cond(p, lambda a: f(a, eye), lambda a: f(a, 2 * eye), a)
        return pc.checkpoint(f)(f(a, eye), b)

    out = program(False, put(A, "x"), put(B, None, "y"))
    assert out.sharding.spec == P("x", "y")
    assert np.allclose(out, 2 * A @ B)


def test_other_shardings_and_collectives():
    def partition(mesh, args, result):
        def lower_fn(a, b):
            return lax.psum(lax.dot(a, b), "x")

        return mesh, lower_fn, divided(None, "y"), (divided(None, "x"), divided("x", "y"))

    f, specs = product(partition, reduction_factors=("j",))
    args = put(A, None, "x"), put(B, "x", "y")
    out = jit(f)(*args)
    assert specs == [(P(None, "x"), P("x", "y"), P(None, "y"))]
    assert np.allclose(out, A @ B)
    assert collectives(f, *args) == {"all-reduce"}


def test_results_have_the_propagated_sharding():
    def whole(mesh, args, result):
        return mesh, lax.dot, divided(), (divided(), divided())

    f, _ = product(whole)
    args = put(A, "x"), put(B, None, "y")
    out = jit(f)(*args)
    assert out.sharding.spec == P("x", "y")
    assert np.allclose(out, A @ B)
    assert "all-gather" in collectives(f, *args)


def test_another_mesh_over_the_same_devices():
    line = pd.Mesh(MESH.devices.reshape(8), ("z",))

    def partition(mesh, args, result):
        rows, whole = NamedSharding(line, P("z")), NamedSharding(line, P())
        return line, lambda a, b: lax.dot(a, b) + 0 * lax.axis_index("z"), rows, (rows, whole)

    f, _ = product(partition)
    out = jit(f)(put(A, "x"), put(B, None, "y"))
    assert np.allclose(out, A @ B)
    assert out.sharding.spec == P("x", "y")


def test_one_device_and_manual_regions_use_the_function():
    f, specs = product()
    assert np.allclose(f(A, B), A @ B)
    mapped = pd.shard_map(f, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"))
    assert np.allclose(mapped(put(A, "x"), B), A @ B)
    assert specs == []
    with pc.disable_jit():
        assert np.allclose(f(put(A, "x"), B), A @ B)


def test_explicit_axes():
    mesh = pd.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    f, specs = product()
    a = pc.device_put(A, NamedSharding(mesh, P("x")))
    b = pc.device_put(B, NamedSharding(mesh, P(None, "y")))
    out = jit(f)(a, b)
    assert pc.typeof(out).str_short() == "f32[8@x,16@y]"
    assert np.allclose(out, A @ B)
    assert specs == [(P("x", None), P(None, "y"), P("x", "y"))]


# Rules


def test_a_rule_object_and_a_function_that_returns_one():
    seen = []

    def rule(mesh, operands, results):
        seen.append((mesh, [str(t) for t in operands], [str(t) for t in results]))
        return RULE

    mapping = SdyShardingRule(
        (ArrayMapping("i", "j"), ArrayMapping("j", "k")), (ArrayMapping("i", "k"),)
    )
    for each in (rule, mapping):
        f, specs = product(rule=each)
        assert np.allclose(jit(f)(put(A, "x"), put(B, None, "y")), A @ B)
        assert specs == [(P("x", None), P(None, "y"), P("x", "y"))]
    assert seen == [(MESH, ["tensor<8x4xf32>", "tensor<4x16xf32>"], ["tensor<8x16xf32>"])]


def test_products_of_factors_are_propagated():
    f = custom_partitioning(lambda x: lax.reshape(x, (2, 4, 4)))
    seen = []

    def partition(mesh, args, result):
        seen.append((args[0].sharding.spec, result.sharding.spec))
        part = result.sharding.shard_shape((2, 4, 4))
        return mesh, lambda x: lax.reshape(x, part), result.sharding, (args[0].sharding,)

    f.def_partition(partition, sharding_rule="(i j) k -> i j k")
    x = put(A, ("x", "y"))
    assert np.allclose(jit(f)(x), A.reshape(2, 4, 4))
    assert seen == [(P(("x", "y"), None), P("x", "y", None))]


def test_without_a_rule_the_results_are_inferred():
    calls = []

    def infer(mesh, args, result):
        calls.append([a.sharding.spec for a in args])
        return divided(args[0].sharding.spec[0], args[1].sharding.spec[1])

    f, specs = product(rule=None, infer_sharding_from_operands=infer)
    out = jit(lambda a, b: lax.sin(f(f(a, np.eye(4, dtype=np.float32)), b)))(
        put(A, "x"), put(B, None, "y")
    )
    assert calls == [[P("x", None), P(None, None)], [P("x", None), P(None, "y")]]
    assert specs[1] == (P("x", None), P(None, "y"), P("x", "y"))
    assert out.sharding.spec == P("x", "y")
    assert np.allclose(out, np.sin(A @ B), atol=1e-4)


def test_without_a_rule_the_users_of_the_results_decide():
    def propagate(mesh, result):
        return divided(result.sharding.spec[0])

    def partition(mesh, args, result):
        return mesh, lax.dot, result.sharding, (result.sharding, divided())

    f, specs = product(partition, rule=None, propagate_user_sharding=propagate)
    out = jit(f, out_shardings=divided("x", "y"))(A, B)
    assert specs == [(P(None, None), P(None, None), P("x", None))]
    assert out.sharding.spec == P("x", "y")
    assert np.allclose(out, A @ B)


def test_shardings_without_names():
    kinds = []

    def partition(mesh, args, result):
        kinds.extend(type(s.sharding) for s in (*args, result))
        return mesh, lax.dot, result.sharding, tuple(a.sharding for a in args)

    f = custom_partitioning(lambda a, b: lax.dot(a, b))
    f.def_partition(partition, sharding_rule=RULE, decode_shardings=False)
    out = jit(f)(put(A, "x"), put(B, None, "y"))
    assert kinds == [TiledSharding] * 3
    assert out.sharding.spec == P("x", "y")
    assert np.allclose(out, A @ B)


# Arguments


def test_static_arguments():
    seen = []

    @lambda fun: custom_partitioning(fun, static_argnums=(1,))
    def power(x, n, y=1.0):
        return x**n + y

    def partition(n, mesh, args, result):
        seen.append((n, len(args)))
        return mesh, lambda x, y: x**n + y, result.sharding, tuple(a.sharding for a in args)

    power.def_partition(partition, sharding_rule=lambda n, mesh, ins, outs: "i j, -> i j")
    x = put(A, "x")
    assert np.allclose(power(x, 2), A**2 + 1)
    assert np.allclose(jit(lambda x: power(x, n=3, y=2.0))(x), A**3 + 2)
    assert np.allclose(power(x, 2), A**2 + 1)
    assert seen == [(2, 2), (3, 2)]
    with pytest.raises(TypeError, match=r"static arguments .* must be hashable, got \(\[2\],\)"):
        power(x, [2])


def test_trees_of_arguments_and_results():
    f = custom_partitioning(lambda d: (d["u"] + d["v"], {"s": d["u"] * 2}))

    def partition(mesh, args, result):
        rows = args[0]["u"].sharding
        assert result[1]["s"].shape == (8, 4)
        return (
            mesh, lambda d: (d["u"] + d["v"], {"s": d["u"] * 2}),
            (rows, {"s": rows}), ({"u": rows, "v": rows},),
        )  # fmt: skip

    f.def_partition(partition, sharding_rule="i j, i j -> i j, i j")
    total, rest = jit(f)({"u": put(A, "x"), "v": put(A, "y")})
    assert np.allclose(total, 2 * A) and np.allclose(rest["s"], 2 * A)


def test_arrays_that_functions_close_over():
    table = pc.device_put(B)
    f = custom_partitioning(lambda a: lax.dot(a, table))

    def partition(mesh, args, result):
        return mesh, lambda a: lax.dot(a, table), divided("x"), (divided("x"),)

    f.def_partition(partition, sharding_rule="i j -> i k")
    assert np.allclose(f(A), A @ B)
    assert np.allclose(jit(f)(put(A, "x")), A @ B)


def test_equal_functions_with_other_parts_are_other_executables():
    def scaled(c):
        def partition(mesh, args, result):
            return mesh, lambda a, b: lax.dot(a, b) * c, divided("x"), (divided("x"), divided())

        return product(partition)[0]

    for c in (1.0, 2.0, 3.0):
        assert np.allclose(jit(scaled(c))(put(A, "x"), B), c * A @ B)


def test_prints_of_the_parts(capsys):
    def partition(mesh, args, result):
        def lower_fn(a, b):
            pc.debug.print("part of {}", lax.axis_index("x"))
            return lax.dot(a, b)

        return mesh, lower_fn, divided("x"), (divided("x"), divided())

    f, _ = product(partition)
    jit(f)(put(A, "x"), B).block_until_ready()
    pc.effects_barrier()
    lines = sorted(capsys.readouterr().out.split("\n"))
    assert lines == [""] + ["part of 0"] * 4 + ["part of 1"] * 4


# Transformations


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap_divides_the_mapped_axis(axis):
    f, specs = product()
    xs = np.stack([A, 2 * A, 3 * A, 4 * A], axis)
    spec = [None] * 3
    spec[axis] = "y"
    out = jit(vmap(f, in_axes=(axis, None)))(put(xs, *spec), B)
    assert specs == [(P(None, None), P(None, None), P(None, None))]
    assert out.sharding.spec[0] == "y" and out.sharding.spec[1:] in ((), (None, None))
    assert np.allclose(out, np.stack([A, 2 * A, 3 * A, 4 * A]) @ B)


def test_nested_vmap_beside_divided_axes():
    f, specs = product()
    xs, ys = np.stack([A] * 4), np.stack([B, 2 * B])
    both = vmap(vmap(f, in_axes=(0, None)), in_axes=(None, 0))
    out = jit(both)(put(xs, "y"), put(ys, None, None, "x"))
    assert specs == [(P(None, None), P(None, "x"), P(None, "x"))]
    assert out.sharding.spec == P(None, "y", None, "x")
    assert np.allclose(out, np.stack([[A @ B] * 4, [A @ (2 * B)] * 4]))
    assert np.allclose(both(xs, ys), out)


def test_vmap_gives_way_to_the_axes_of_the_parts():
    def partition(mesh, args, result):
        return mesh, lax.dot, divided(None, "y"), (divided(), divided(None, "y"))

    f, _ = product(partition)
    xs = np.stack([A] * 4)
    out = jit(vmap(f, in_axes=(0, None)))(put(xs, "y"), B)
    assert np.allclose(out, xs @ B)


def test_vmap_with_an_axis_of_the_mesh():
    f, specs = product()
    out = jit(vmap(f, in_axes=(0, None), spmd_axis_name="x"))(np.stack([A] * 4), put(B, None, "y"))
    assert specs == [(P(None, None), P(None, "y"), P(None, "y"))]
    assert np.allclose(out, np.stack([A] * 4) @ B)


def test_derivatives_are_those_of_custom_vjp():
    def partition(mesh, args, result):
        rows, columns = result.sharding.spec
        return mesh, lax.dot, result.sharding, (divided(rows), divided(None, columns))

    f, _ = product(partition)
    with pytest.raises(UnsupportedRule, match=r"has no derivative.*wrap it in custom_vjp"):
        pc.grad(lambda a: lax.reduce_sum(f(a, B), (0, 1)))(A)
    g = pc.custom_vjp(f)

    def backward(saved, ct):
        a, b = saved
        return f(ct, lax.transpose(b, (1, 0))), f(lax.transpose(a, (1, 0)), ct)

    g.defvjp(lambda a, b: (f(a, b), (a, b)), backward)
    loss = lambda a, b: lax.reduce_sum(lax.sin(g(a, b)), (0, 1))
    plain = lambda a, b: lax.reduce_sum(lax.sin(lax.dot(a, b)), (0, 1))
    ours = jit(pc.grad(loss, (0, 1)))(put(A, "x"), put(B, None, "y"))
    for x, y in zip(ours, pc.grad(plain, (0, 1))(A, B)):
        assert np.allclose(x, y, atol=1e-3)


def test_lowered_text_has_the_parts_and_lines():
    f, _ = product()
    lowered = jit(f).lower(put(A, "x"), put(B, None, "y"))
    text = lowered.as_text()
    assert "sdy.manual_computation" in text and "tensor<4x4xf32>" in text
    assert "partitioned" not in text
    assert "test_custom_partitioning.py" in lowered.as_text(debug_info=True)


# Messages


def returned(value):
    return product(lambda mesh, args, result: value)[0]


WHOLE = (divided(), divided())
MESSAGES = {
    "nothing": (None, TypeError, "must return (mesh, lower_fn, result_shardings, arg_shardings)"),
    "mesh": ((MESH.abstract_mesh, lax.dot, divided(), WHOLE), TypeError, "must return a Mesh as"),
    "devices": (
        (pd.Mesh(MESH.devices[::-1], ("x", "y")), lax.dot, divided(), WHOLE), ValueError,
        "does not have the devices of the program in their order",
    ),
    "function": ((MESH, None, divided(), WHOLE), TypeError, "must return a function of the parts"),
    "count": (
        (MESH, lax.dot, divided(), WHOLE[:1]), TypeError,
        "returned 1 shardings of arguments, but the function has 2 arguments",
    ),
    "spec": (
        (MESH, lax.dot, P("x"), WHOLE), TypeError, "must return NamedSharding, got P('x',) for",
    ),
    "size": (
        (MESH, lax.dot, divided(), (divided(None, ("x", "y")), divided())), ValueError,
        "an invalid sharding for argument 0: axis 1 of an array of shape (8, 4) has the size 4",
    ),
    "other mesh": (
        (MESH, lax.dot, NamedSharding(pd.Mesh(MESH.devices.reshape(8), ("z",)), P("z")), WHOLE),
        ValueError, "for result 0, but the mesh is Mesh('x': 2, 'y': 4",
    ),
    "part": (
        (MESH, lax.dot, divided("x"), WHOLE), TypeError,
        "has result 0 of type float32[8, 16], but the part of an array of type float32[8, 16] that "
        "is divided as P('x', None) has the type float32[4, 16]",
    ),
    "dtype": (
        (MESH, lambda a, b: lax.convert_element_type(lax.dot(a, b), "int32"), divided(), WHOLE),
        TypeError, "has result 0 of type int32[8, 16], but",
    ),
    "structure": (
        (MESH, lambda a, b: [lax.dot(a, b)], divided(), WHOLE), TypeError,
        "has a result of structure PyTreeDef([*]), but the function has one of structure",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_wrong_results_of_partition(name):
    value, kind, text = MESSAGES[name]
    with pytest.raises(kind, match=re.escape(text)) as caught:
        jit(returned(value))(put(A, "x"), B)
    assert "custom_partitioning of <lambda>" in str(caught.value)
    assert any("lowering custom_partitioning" in n for n in getattr(caught.value, "__notes__", ()))


def test_errors_of_callbacks_are_raised():
    with pytest.raises(ZeroDivisionError):
        jit(product(lambda mesh, args, result: 1 / 0)[0])(put(A, "x"), B)


def test_rules_that_do_not_fit_name_the_function():
    f, _ = product(rule="i j -> i j")
    with pytest.raises(ValueError, match="custom_partitioning of <lambda>: the sharding rule has"):
        jit(f)(put(A, "x"), B)


def test_wrong_calls():
    with pytest.raises(TypeError, match="custom_partitioning takes a function, got 3"):
        custom_partitioning(3)
    f = custom_partitioning(lambda a: a)
    with pytest.raises(ValueError, match="<lambda> has no division: call its method def_partition"):
        f(A)
    with pytest.raises(TypeError, match="takes a function as `partition`, got None"):
        f.def_partition(None)
    with pytest.raises(TypeError, match="as `infer_sharding_from_operands`, got 3"):
        f.def_partition(as_propagated, 3)
    with pytest.raises(ValueError, match="got reduction_factors, which belong to a sharding_rule"):
        f.def_partition(as_propagated, reduction_factors=("i",))
    g = custom_partitioning(lambda a, *, b=1: a)
    g.def_partition(as_propagated)
    with pytest.raises(TypeError, match="takes positional arguments only, got the keywords b"):
        g(A, b=2)


def test_traced_values_must_be_arguments():
    def program(a, b):
        f = custom_partitioning(lambda x: lax.dot(x, b))
        f.def_partition(as_propagated, sharding_rule="i j -> i k")
        return f(a)

    with pytest.raises(TypeError, match="closes over a traced value: pass it as an argument"):
        jit(program)(A, B)


def test_only_equal_parts_are_passed_to_partition():
    """XLA pads values of other sizes inside of a program."""

    def partition(mesh, args, result):
        return mesh, lambda x: 2 * x, result.sharding, (args[0].sharding,)

    double = custom_partitioning(lambda x: 2 * x)
    double.def_partition(partition, sharding_rule="i j -> i j")
    out = jit(lambda x: double(lax.slice_in_dim(x, 0, 7) + 1))(put(A, "y", "x"))
    assert np.array_equal(out, 2 * (A[:7] + 1))
    stacked = np.stack([A] * 8)
    out = jit(lambda x: vmap(double)(lax.slice_in_dim(x, 0, 7) + 1))(put(stacked, "x"))
    assert np.array_equal(out, 2 * (stacked[:7] + 1))


@pytest.mark.parametrize(
    "name, message",
    [
        ("z", "mapped by vmap with spmd_axis_name='z', which Mesh('x': 2, 'y': 4"),
        ("y", "over an axis of size 6 with spmd_axis_name='y', which does not divide it into equ"),
    ],
)
def test_vmap_with_an_axis_that_does_not_divide(name, message):
    f, _ = product()
    with pytest.raises(ValueError, match=re.escape(message)):
        jit(vmap(f, spmd_axis_name=name))(put(np.stack([A] * 6)), put(np.stack([B] * 6)))


def test_the_result_of_the_parts_may_be_in_a_tuple():
    def partition(mesh, args, result):
        specs = tuple(a.sharding for a in args)
        return mesh, lambda a, b: (lax.dot(a, b),), (result.sharding,), specs

    f, _ = product(partition)
    assert np.allclose(jit(f)(put(A, "x"), B), A @ B)


def test_static_arguments_by_negative_positions():
    f = custom_partitioning(lambda x, n: x * n, static_argnums=(-1,))
    f.def_partition(
        lambda n, mesh, args, out: (mesh, lambda x: x * n, out.sharding, (args[0].sharding,)),
        sharding_rule="i j -> i j",
    )
    assert np.array_equal(jit(lambda x: f(x, 3))(put(A, "x")), 3 * A)
    assert np.array_equal(jit(lambda x: f(x, n=2.0))(put(A, "x")), 2 * A)


def test_factors_are_not_one_string():
    with pytest.raises(TypeError, match="reduction_factors takes a sequence of names, got 'j'"):
        product(reduction_factors="j")
