"""Tests of primitives and rules in the reference's convention, with the core alone."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import primax
from primax import lax
from primax.extend import (
    Effect,
    Primitive as CorePrimitive,
    ShapedArray,
    eval_jaxpr,
    typeof,
)
from primax.extend.core import Primitive, create_call_primitive
from primax.extend.mlir import ir
from primax.extend.mlir.dialects import stablehlo as hlo
from primax.interpreters import ad, batching, mlir, pxla, xla

X = np.arange(1.0, 4.0, dtype=np.float32)
S = np.float32(2.0)


def multiply_add(lowering: str = "hlo", impl: bool = True) -> Any:
    """Define ``x * y + z`` with all rules and record the arguments of the rules."""
    prim = Primitive("multiply_add")
    seen: list[Any] = []

    def call(x: Any, y: Any, z: Any) -> Any:
        return prim.bind(x, y, z)

    if impl:

        @prim.def_impl
        def impl(x, y, z):
            seen.append(("impl", type(x).__name__))
            return x * y + z

    @prim.def_abstract_eval
    def abstract_eval(x, y, z):
        if not x.shape == y.shape == z.shape:
            raise TypeError("operands of multiply_add must have one shape")
        return ShapedArray(x.shape, x.dtype)

    def by_hlo(ctx, x, y, z):
        assert ctx.primitive is prim and len(ctx.avals_in) == 3
        assert ctx.module_context.platforms == ("cpu",)
        return [hlo.AddOp(hlo.MulOp(x, y).result, z).result]

    by_fun = mlir.lower_fun(lambda x, y, z: lax.add(lax.mul(x, y), z), multiple_results=False)
    mlir.register_lowering(prim, by_hlo if lowering == "hlo" else by_fun)

    def jvp(primals, tangents):
        (x, y, z), (xt, yt, zt) = primals, tangents
        seen.append(("jvp", [type(t) is ad.Zero for t in tangents]))
        zeros = lambda t: lax.full_like(x, 0) if type(t) is ad.Zero else t
        return call(x, y, z), call(zeros(xt), y, call(x, zeros(yt), zeros(zt)))

    def transpose(ct, x, y, z):
        undefined = [type(a) is ad.UndefinedPrimal for a in (x, y, z)]
        assert undefined == [isinstance(a, ad.UndefinedPrimal) for a in (x, y, z)]
        zero = lax.full_like(ct, 0)
        return (
            call(ct, y, zero) if undefined[0] else None,
            call(x, ct, zero) if undefined[1] else None,
            ct if undefined[2] else None,
        )

    def batcher(args, dims):
        (size,) = {a.shape[d] for a, d in zip(args, dims) if d is not None}
        return call(*(batching.bdim_at_front(a, d, size) for a, d in zip(args, dims))), 0

    ad.primitive_jvps[prim] = jvp
    ad.primitive_transposes[prim] = transpose
    batching.primitive_batchers[prim] = batcher
    return SimpleNamespace(
        prim=prim, call=call, seen=seen, jvp=jvp, transpose=transpose, batcher=batcher
    )


@pytest.mark.parametrize("impl", [True, False])
@pytest.mark.parametrize("lowering", ["hlo", "fun"])
def test_primitive_defined_through_all_tables(lowering: str, impl: bool) -> None:
    f = multiply_add(lowering, impl).call
    assert f(S, 3.0, 4.0) == 10
    assert primax.jit(f)(S, 3.0, 4.0) == 10
    assert primax.grad(f, (0, 1, 2))(S, np.float32(3), S) == (3, 2, 1)
    assert primax.jit(primax.grad(f, (0, 1, 2)))(S, 3.0, 4.0) == (3, 2, 1)
    assert np.array_equal(primax.vmap(f)(X, X, X), X * X + X)
    assert np.array_equal(primax.vmap(f, (0, None, None))(X, S, S), 2 * X + 2)
    both = primax.jit(primax.vmap(primax.grad(lambda x: f(x, x, x))))
    assert np.array_equal(both(X), 2 * X + 1)
    assert primax.hessian(lambda x: f(x, x, x))(S) == 2
    carry, _ = lax.scan(lambda c, x: (f(c, x, x), None), S, X)
    assert carry == ((2 * 1 + 1) * 2 + 2) * 3 + 3
    derivative = primax.grad(lambda s: lax.scan(lambda c, x: (f(c, x, x), None), s, X)[0])(S)
    assert derivative == 6
    assert primax.linear_transpose(lambda z: f(S, S, z), S)(S) == (2,)
    with pytest.raises(TypeError, match="must have one shape"):
        primax.jit(f)(X, S, S)


def test_rules_receive_concrete_values() -> None:
    example = multiply_add()
    primax.grad(example.call)(S, S, S)
    kinds = [k for k, _ in example.seen]
    assert kinds[0] == "jvp" and ("jvp", [False, True, True]) in example.seen
    assert ("impl", "ArrayImpl") in example.seen


def test_jaxprs_contain_the_primitive() -> None:
    example = multiply_add()
    jaxpr = primax.make_jaxpr(example.call)(S, S, S)
    (eqn,) = jaxpr.eqns
    assert eqn.primitive is example.prim and str(eqn.primitive) == "multiply_add"
    assert eval_jaxpr(jaxpr, [S, S, S]) == [6]
    assert isinstance(example.prim, CorePrimitive)
    assert isinstance(lax.sin_p, Primitive) and not isinstance("sin", Primitive)
    assert example.prim.abstract_eval(typeof(S), typeof(S), typeof(S)) == (typeof(S), frozenset())


# Parameters


def power_primitive() -> Any:
    prim = Primitive("powers")
    prim.multiple_results = True
    prim.def_impl(lambda x, *, exponents: [x**e for e in exponents])
    prim.def_abstract_eval(lambda x, *, exponents: [x for _ in exponents])
    lower = mlir.lower_fun(lambda x, *, exponents: [lax.integer_pow(x, e) for e in exponents])
    mlir.register_lowering(prim, lower)

    def jvp(primals, tangents, exponents):
        (x,), (t,) = primals, tangents
        dots = [lax.mul(t, e * lax.integer_pow(x, e - 1)) for e in exponents]
        return prim.bind(x, exponents=exponents), dots

    ad.primitive_jvps[prim] = jvp
    batching.primitive_batchers[prim] = lambda args, dims, exponents: (
        prim.bind(*args, exponents=exponents),
        dims * len(exponents),
    )
    return prim


def test_parameters_need_not_be_hashable() -> None:
    prim = power_primitive()
    f = lambda x: prim.bind(x, exponents=[2, 3])
    assert f(S) == [4, 8] and primax.jit(f)(S) == [4, 8]
    assert primax.jvp(f, (S,), (1.0,))[1] == [4, 12]
    assert primax.grad(lambda x: f(x)[1])(S) == 12
    assert primax.jit(primax.grad(lambda x: f(x)[1]))(S) == 12
    squares, cubes = primax.jit(primax.vmap(f))(X)
    assert np.array_equal(squares, X**2) and np.array_equal(cubes, X**3)


def test_errors_name_the_missing_rule() -> None:
    bare = Primitive("bare")
    with pytest.raises(NotImplementedError, match="Evaluation rule for 'bare' not implemented"):
        bare.bind(S)
    bare.def_impl(lambda x: x)
    assert bare.bind(S) == 2
    with pytest.raises(NotImplementedError, match=r"bare .*no abstract rule.*def_abstract") as e:
        primax.jit(bare.bind)(S)
    assert e.type is NotImplementedError  # programs compare the class
    bare.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match=r"bare .*no lower rule"):
        primax.jit(bare.bind)(S)
    with pytest.raises(NotImplementedError, match=r"bare .*no batch rule"):
        primax.vmap(bare.bind)(X)
    with pytest.raises(NotImplementedError, match=r"bare .*no jvp rule.*primitive_jvps\[bare_p\]"):
        primax.grad(bare.bind)(S)
    ad.primitive_jvps[bare] = lambda p, t: (bare.bind(*p), bare.bind(*t))
    with pytest.raises(NotImplementedError, match=r"bare .*no transpose rule"):
        primax.grad(bare.bind)(S)


def _calls(**options: Any) -> Any:
    prim = Primitive("native")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(
        prim,
        lambda ctx, x: (
            mlir.custom_call("function", operands=[x], result_types=[x.type], **options).results
        ),
    )
    return primax.jit(prim.bind).lower(X).as_text()


def test_custom_calls() -> None:
    text = _calls()
    assert "custom_call @function(%arg0) {api_version = 2 : i32" in text
    text = _calls(
        operand_layouts=[[0]], result_layouts=[[0]], operand_output_aliases={0: 0},
        has_side_effect=True, backend_config="text",
    )  # fmt: skip
    for part in ("operand_layouts = [dense<0>", "has_side_effect = true", 'backend_config = "text"',
                 "output_operand_alias<output_tuple_indices = [], operand_index = 0"):  # fmt: skip
        assert part in text
    number = mlir.ir.IntegerAttr.get
    with primax.extend.mlir.context:
        attribute = number(mlir.ir.IntegerType.get_signless(32), 3)
    text = _calls(api_version=4, backend_config={"n": attribute}, extra_attributes={"m": attribute})
    assert "backend_config = {n = 3 : i32}" in text and "m = 3 : i32" in text


def test_errors_of_custom_calls() -> None:
    with pytest.raises(TypeError, match="api_version=2 takes a text as backend_config, got dict"):
        _calls(backend_config={})
    with pytest.raises(TypeError, match="api_version=4 takes a dictionary of attributes"):
        _calls(api_version=4, backend_config="text")
    with pytest.raises(ValueError, match="has layouts of operands only: specify both"):
        _calls(operand_layouts=[[0]])
    with pytest.raises(ValueError, match="got 2 result_layouts for 1 values"):
        _calls(operand_layouts=[[0]], result_layouts=[[0], [0]])
    with pytest.raises(ValueError, match="got 0 result_shapes for 1 values"):
        _calls(result_shapes=[])


def test_checkpoint_runs_what_has_only_an_implementation() -> None:
    prim = Primitive("double_in_python")
    calls: list[Any] = []
    prim.def_impl(lambda x: (calls.append(x), np.asarray(x) * 2)[1])
    prim.def_abstract_eval(lambda x: x)
    ad.deflinear2(prim, lambda ct, _: [prim.bind(ct)])
    f = primax.checkpoint(lambda x: lax.sin(prim.bind(x)))
    assert np.allclose(f(X), np.sin(2 * X)) and len(calls) == 1
    assert np.allclose(
        primax.grad(lambda x: lax.reduce_sum(f(x), (0,)))(X), 2 * np.cos(2 * X), atol=1e-6
    )
    assert len(calls) == 4  # the value, the recomputed value, and the cotangent
    with pytest.raises(NotImplementedError, match=r"double_in_python .*no lower rule"):
        primax.jit(f)(X)


def test_apply_primitive_ignores_impl() -> None:
    example = multiply_add()
    example.prim.def_impl(lambda *args: xla.apply_primitive(example.prim, *args))
    assert example.call(S, S, S) == 6
    assert xla.apply_primitive(lax.sin_p, 0.0, accuracy=None) == 0


class Pair(Primitive):
    """A primitive defined by methods and attributes of a subclass."""

    multiple_results = True

    def impl(self, x: Any, *, k: float) -> Any:
        return [lax.mul(x, k), x]

    def abstract_eval(self, x: Any, *, k: float) -> Any:
        return [x, x], set()


def test_subclass_of_primitive() -> None:
    pair = Pair("pair")
    first, second = pair.bind(X, k=2.0)
    assert pair.multiple_results and np.array_equal(first, 2 * X) and np.array_equal(second, X)
    jaxpr = primax.make_jaxpr(lambda x: pair.bind(x, k=2.0))(X)
    assert [v.aval.shape for v in jaxpr.outvars] == [(3,), (3,)]
    assert [o.shape for o in primax.eval_shape(partial(pair.bind, k=2.0), X)] == [(3,), (3,)]
    assert not Primitive("other").multiple_results


def test_bind_with_trace_rule() -> None:
    prim = Primitive("noted")
    traces = []

    @prim.def_bind_with_trace
    def bind_with_trace(trace, args, params):
        traces.append(trace)
        return lax.neg(args[0])

    assert prim.bind(S) == -2 and primax.jit(prim.bind)(S) == -2
    assert traces[0] is None and traces[1] is not None


# Tables


def test_tables_return_the_stored_rule() -> None:
    example = multiply_add()
    assert ad.primitive_jvps[example.prim] is example.jvp
    assert ad.primitive_transposes[example.prim] is example.transpose
    assert batching.primitive_batchers[example.prim] is example.batcher
    assert example.prim in batching.fancy_primitive_batchers
    replaced = lambda p, t: (example.call(*p), lax.full_like(p[0], 7))
    ad.primitive_jvps[example.prim] = replaced
    assert ad.primitive_jvps.get(example.prim) is replaced
    assert primax.jvp(example.call, (S,) * 3, (S,) * 3)[1] == 7
    with pytest.raises(TypeError, match="must be callable"):
        ad.primitive_jvps[example.prim] = 3


def test_tables_contain_the_core_rules() -> None:
    assert lax.sin_p in ad.primitive_jvps and lax.sin_p not in ad.primitive_transposes
    assert "sin" not in ad.primitive_jvps
    out, dot = ad.primitive_jvps[lax.sin_p]([1.0], [1.0], accuracy=None)
    assert np.allclose(out, np.sin(1)) and np.allclose(dot, np.cos(1))
    _, dot = ad.primitive_jvps[lax.sin_p]([1.0], [ad.Zero(typeof(1.0))], accuracy=None)
    assert type(dot) is ad.Zero
    cts = ad.primitive_transposes[lax.mul_p](S, ad.UndefinedPrimal(typeof(S)), S)
    assert cts[0] == 4 and cts[1] is None
    assert ad.get_primitive_transpose(lax.mul_p)(S, S, ad.UndefinedPrimal(typeof(S)))[1] == 4
    with pytest.raises(NotImplementedError, match=r"Transpose rule .*'sin' not implemented"):
        ad.get_primitive_transpose(lax.sin_p)
    x = np.ones((2, 3), np.float32)
    axis = batching.AxisData("i", 3)
    for got in (
        batching.primitive_batchers[lax.reduce_sum_p]([x], [1], axes=(0,), out_sharding=None),
        batching.axis_primitive_batchers[lax.reduce_sum_p](
            3, "i", None, [x], [1], axes=(0,), out_sharding=None
        ),
        batching.fancy_primitive_batchers[lax.reduce_sum_p](
            axis, [x], [1], axes=(0,), out_sharding=None
        ),
    ):
        assert np.array_equal(got[0], [2, 2, 2]) and got[1] == 0
    names = {p.name for p in ad.primitive_jvps}
    assert {"sin", "mul", "jit"} <= names and len(ad.primitive_jvps) >= len(names)
    assert isinstance(ad.primitive_jvps.copy(), dict)
    # By its expansion:
    program = primax.make_jaxpr(lambda x: lax.sin(x))(S)
    assert primax.jit(lambda x: x).trace(S).jaxpr.eqns == []
    assert ad.primitive_jvps[lax.sin_p] is not None and len(program.eqns) == 1


def test_rule_removal() -> None:
    example = multiply_add()
    rule = ad.primitive_jvps.pop(example.prim)
    assert rule is example.jvp and example.prim not in ad.primitive_jvps
    with pytest.raises(NotImplementedError, match="removed from the table"):
        primax.grad(example.call)(S, S, S)
    with pytest.raises(KeyError):
        del ad.primitive_jvps[example.prim]
    ad.primitive_jvps[example.prim] = rule
    assert primax.grad(example.call)(S, S, S) == 2


def test_replacement_of_a_core_rule() -> None:
    before = ad.primitive_jvps[lax.asinh_p]
    f = primax.jit(primax.grad(lax.asinh))
    assert f(0.0) == 1
    ad.primitive_jvps[lax.asinh_p] = lambda p, t, **params: (
        lax.asinh_p.bind(*p, **params),
        lax.mul(t[0], 5.0),
    )
    try:
        assert primax.grad(lax.asinh)(0.0) == 5 and f(0.0) == 5
    finally:
        ad.primitive_jvps[lax.asinh_p] = before
    assert primax.grad(lax.asinh)(0.0) == 1 and f(0.0) == 1


def test_batching_rules_with_axis_data() -> None:
    calls: list[Any] = []
    for table, rule in (
        (batching.axis_primitive_batchers,
         lambda size, name, trace, args, dims: (calls.append((size, name)), (args[0], dims[0]))[1]),
        (batching.fancy_primitive_batchers,
         lambda axis, args, dims: (calls.append((axis.size, axis.name)), (args[0], dims[0]))[1]),
    ):  # fmt: skip
        prim = Primitive("asking")
        prim.def_impl(lambda x: x)
        prim.def_abstract_eval(lambda x: x)
        mlir.register_lowering(prim, mlir.lower_fun(lambda x: x, multiple_results=False))
        table[prim] = rule
        assert table[prim] is rule
        primax.vmap(prim.bind, axis_name="i")(X)
        primax.jit(primax.vmap(prim.bind))(X)
    assert calls == [(3, "i"), (3, None)] * 2


# Groups of primitives


def elementwise(name: str, fun: Any, arity: int = 1) -> Any:
    prim = Primitive(name)
    prim.def_abstract_eval(lambda *avals, **params: avals[0])
    mlir.register_lowering(prim, mlir.lower_fun(fun, multiple_results=False))
    return prim


def test_defjvp() -> None:
    for define, rules in (
        (ad.defjvp, (lambda t, x, y: lax.mul(t, y), None)),
        (ad.defjvp2, (lambda t, out, x, y: lax.mul(t, lax.div(out, x)), None)),
    ):
        prim = elementwise("product", lax.mul)
        define(prim, *rules)
        assert primax.grad(prim.bind, (0, 1))(S, 5.0) == (5, 0)


def test_linear_and_bilinear() -> None:
    double = elementwise("double", lambda x: lax.mul(x, lax.full_like(x, 2)))
    ad.deflinear(double, lambda ct: [double.bind(ct)])
    batching.defvectorized(double)
    assert primax.grad(double.bind)(S) == 2
    assert np.array_equal(primax.vmap(primax.grad(double.bind))(X), [2, 2, 2])
    assert primax.linear_transpose(double.bind, S)(S) == (4,)
    assert primax.grad(lambda x: double.bind(lax.stop_gradient(x)))(S) == 0

    product = elementwise("product", lax.mul)
    ad.defbilinear(
        product, lambda ct, x, y: product.bind(ct, y), lambda ct, x, y: product.bind(x, ct)
    )
    batching.defbroadcasting(product)
    assert primax.grad(product.bind, (0, 1))(S, 5.0) == (5, 2)
    assert primax.hessian(lambda x: product.bind(x, x))(S) == 2
    outer = primax.vmap(primax.vmap(product.bind, (None, 0)), (0, None))
    assert np.array_equal(outer(X, X), np.outer(X, X))
    with pytest.raises(ValueError, match="linear in one operand at a time"):
        primax.linear_transpose(lambda x: product.bind(x, x), S)(S)


def test_reducers() -> None:
    total = Primitive("total")
    total.def_abstract_eval(
        lambda x, *, axes: ShapedArray([n for i, n in enumerate(x.shape) if i not in axes], x.dtype)
    )
    lower = mlir.lower_fun(lambda x, *, axes: lax.reduce_sum(x, axes), multiple_results=False)
    mlir.register_lowering(total, lower)
    batching.defreducer(total)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for d in range(3):
        moved = np.moveaxis(x, d, 0)
        for axes in ((0,), (1,), (0, 1), ()):
            got = primax.vmap(partial(total.bind, axes=axes), d)(x)
            assert np.array_equal(got, [y.sum(axes) for y in moved]), (d, axes)


@pytest.mark.parametrize("dims", [(0, 0), (1, 0), (0, None), (None, 1)])
def test_elementwise_batching_of_any_axis(dims: tuple[int | None, ...]) -> None:
    prim = elementwise("less", lax.sub)
    batching.defbroadcasting(prim)
    x, y = (np.arange(9, dtype=np.float32).reshape(3, 3) if d is not None else X for d in dims)
    want = primax.vmap(lax.sub, dims)(x, y)
    assert np.array_equal(primax.vmap(prim.bind, dims)(x, y), want)


# Symbolic values, functions and jaxprs


def test_symbolic_values() -> None:
    zero, undefined = ad.Zero(typeof(S)), ad.UndefinedPrimal(typeof(S))
    assert primax.tree.leaves([zero, undefined]) == []
    mapped = primax.tree.map(lambda x: x, [zero, undefined])
    assert type(mapped[0]) is ad.Zero and mapped[1].aval == typeof(S)
    assert zero.instantiate() == 0 and ad.instantiate_zeros(zero) == 0
    assert ad.instantiate_zeros(3.0) == 3 and ad.zeros_like_aval(typeof(X)).shape == (3,)
    assert ad.add_tangents(zero, S) == 2 and ad.add_jaxvals(S, S) == 4
    assert ad.is_undefined_primal(undefined) and not ad.is_undefined_primal(S)


def test_forward_mode_of_functions_and_jaxprs() -> None:
    fun = lambda x, y: ({"a": lax.sin(x), "b": 1.0}, y)
    outs, dots, aux = ad.jvp(fun, (0.0, 2.0), (1.0, 1.0), has_aux=True)
    assert (outs, dots, aux) == ({"a": 0, "b": 1}, {"a": 1, "b": 0}, 2)
    dots = ad.jvp(lambda x: [x, 1.0], (S,), (ad.Zero(typeof(S)),), instantiate=False)[1]
    assert [type(t) for t in dots] == [ad.Zero, ad.Zero]
    jaxpr = primax.make_jaxpr(lambda x, y: x * 2 + y)(S, S)
    program, nonzero = ad.jvp_jaxpr(jaxpr, [True, False], False)
    assert nonzero == [True] and eval_jaxpr(program, [S, S, S]) == [6, 4]
    seen: list[Any] = []
    primax.jvp(lambda x: seen.append(x) or x, (S,), (S,))
    (tracer,) = seen
    assert type(tracer) is ad.JVPTracer and tracer.tangent == 2
    assert tracer._trace.main is tracer._trace


def test_linear_jaxprs() -> None:
    fun = lambda x, y: ({"a": lax.sin(x), "b": 1.0}, y)
    outs, zero, program, residuals, aux = ad.linearize(fun, [0.0, 2.0], has_aux=True)
    assert (outs, zero, aux) == ({"a": 0, "b": 1}, [False, True], 2)
    assert eval_jaxpr(program, [*residuals, 3.0, 4.0]) == [3]
    only = ad.linearize(lambda x, y: [x * y], [2.0, 3.0], in_nzs=[False, True])
    assert eval_jaxpr(only[2], [*only[3], 5.0]) == [10]
    nothing = ad.linearize(lambda x: [1.0], [2.0])
    assert nothing[1] == [True] and eval_jaxpr(nothing[2], [1.0]) == []
    jaxpr = primax.make_jaxpr(lambda x, y: x * 2 * y)(S, S)
    cts = ad.backward_pass(jaxpr, False, [], [ad.UndefinedPrimal(typeof(S)), 3.0], [5.0])
    assert cts[0] == 30 and type(cts[1]) is ad.Zero


def test_batched_jaxprs() -> None:
    jaxpr = primax.make_jaxpr(lambda x, y: [x * 2 + y, y])(S, S)
    axis = batching.AxisData("i", 3)
    program, mapped = batching.batch_jaxpr_axes(
        jaxpr, axis, [0, None], [0, batching.zero_if_mapped]
    )
    assert mapped == [True, False]
    assert np.array_equal(eval_jaxpr(program, [X, S])[0], 2 * X + 2)
    with pytest.raises(ValueError, match="out_axes is None"):
        batching.batch_jaxpr_axes(jaxpr, axis, [0, None], [None, None])
    x = np.ones((2, 3), np.float32)
    assert batching.broadcast(x, 5, 1).shape == (2, 5, 3)
    assert batching.moveaxis(x, 1, -2).shape == (3, 2)
    assert batching.not_mapped is None


# Lowering


def test_lowering_by_platform() -> None:
    prim = elementwise("somewhere", lambda x: x)
    mlir.register_lowering(
        prim, mlir.lower_fun(lambda x: lax.neg(x), multiple_results=False), platform="cpu"
    )
    assert primax.jit(prim.bind)(S) == -2
    with pytest.raises(NotImplementedError, match="unknown platform nonsense"):
        mlir.register_lowering(prim, lambda ctx, x: [x], platform="nonsense")


def test_invalid_lowerings_raise() -> None:
    prim = Primitive("wrong")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, lambda ctx, x: [])
    with pytest.raises(ValueError, match=r"wrong returned values of type none.*tensor<f32>"):
        primax.jit(prim.bind)(S)
    mlir.register_lowering(prim, lambda ctx, x: [mlir.ir_constant(X)])
    with pytest.raises(ValueError, match="wrong returned values of type tensor<3xf32>"):
        primax.jit(prim.bind)(S)


def test_rule_context() -> None:
    prim = Primitive("outer")
    prim.multiple_results = True
    prim.def_abstract_eval(lambda x, **params: [x, x])

    def rule(ctx, x, *, by):
        inner = mlir.lower_fun(lambda x: lax.mul(x, S), multiple_results=False)
        (twice,) = inner(ctx.replace(avals_out=ctx.avals_out[:1]), x)
        assert mlir.aval_to_ir_type(ctx.module_context, ctx.avals_in[0]) == x.type
        assert ctx.module_context.symbol_table is not None and not ctx.is_forward_compat()
        assert ctx.module_context.new_channel() < ctx.module_context.new_channel()
        ctx.module_context.add_keepalive(by)
        called = mlir.core_call_lowering(
            ctx, x, name="called", call_jaxpr=primax.make_jaxpr(lambda x: x - 1)(S)
        )
        return [twice, called]

    mlir.register_lowering(prim, rule)
    assert primax.jit(lambda x: prim.bind(x, by=object()))(S) == [4, 1]
    # Rules of the core with this context:
    base = Primitive("borrowed")
    base.def_abstract_eval(lambda x: x)
    sine = mlir_table()[lax.sin_p]
    mlir.register_lowering(base, lambda ctx, x: sine(ctx, x, accuracy=None))
    assert np.allclose(primax.jit(base.bind)(S), np.sin(2))


def mlir_table() -> Any:
    from primax._adapters.lowering import lowerings

    return lowerings()


def test_values_and_attributes() -> None:
    assert str(mlir.i32_attr(3)) == "3 : i32" and str(mlir.i64_attr(3)) == "3 : i64"
    assert str(mlir.dense_int_elements([1, 2])) == "dense<[1, 2]> : tensor<2xi64>"
    assert str(mlir.dense_int_array([1, 2])) == "array<i64: 1, 2>"
    assert str(mlir.dtype_to_ir_type(np.dtype("int32"))) == "i32"
    assert str(mlir.token_type()) == "!stablehlo.token"
    for value, text in (
        (3, "3 : i64"),
        ("a", '"a"'),
        (True, "true"),
        ([1, 2.0], "[1, 2.000000e+00]"),
        ({"a": True}, "{a = true}"),
        (np.float32(2), "2.000000e+00 : f32"),
        (np.int8(2), "2 : i8"),
        (np.ones(2, np.float32), "dense<1.000000e+00> : tensor<2xf32>"),
        (np.dtype("int8"), "i8"),
    ):
        assert str(mlir.ir_attribute(value)) == text
    with pytest.raises(TypeError, match="to an MLIR attribute"):
        mlir.ir_attribute(object())
    with pytest.raises(TypeError, match="no MLIR type for values of"):
        mlir.aval_to_ir_types(None, object())
    leaves, tree = mlir.ir_tree_registry.flatten([1, (2, 3)])
    assert leaves == [1, 2, 3] and tree.unflatten("abc") == ["a", ("b", "c")]
    assert mlir.flatten_ir_values([1, [2]]) == mlir.flatten_ir_types([1, (2,)]) == [1, 2]
    assert mlir.unflatten_ir_values_like_types([1, 2], ["t", ("t",)]) == [1, (2,)]


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


def test_constants() -> None:
    mlir.register_constant_handler(
        Celsius, lambda val, aval: mlir.ir_constant(np.float32(val.degrees))
    )
    prim = Primitive("constants")
    prim.def_abstract_eval(lambda x: ShapedArray((2,), np.float32))

    def rule(ctx, x):
        degrees = mlir.ir_constant(Celsius(3.0))
        (one,) = mlir.ir_constants(np.ones(2, np.float32))
        size = mlir.shape_tensor(ctx.module_context, [mlir.ir_constant(np.int32(2))])
        assert str(size.type) == "tensor<1xi32>"
        assert str(mlir.shape_tensor(ctx.module_context, [1, 2]).type) == "tensor<2xi32>"
        wide = hlo.broadcast_in_dim(one.type, degrees, mlir.dense_int_array([]))
        return [hlo.add(wide, one)]

    mlir.register_lowering(prim, rule)
    assert np.array_equal(primax.jit(prim.bind)(S), [4, 4])


def test_python_callbacks() -> None:
    for effect in (False, True):
        called: list[Any] = []
        prim = Primitive("host")
        prim.multiple_results = True
        prim.def_abstract_eval(lambda x: [x])

        def rule(ctx, x, called=called, effect=effect):
            def callback(value):
                called.append(float(value))
                return (np.asarray(value) * 3,)

            outs, token, keep = mlir.emit_python_callback(
                ctx, callback, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=effect
            )
            ctx.module_context.add_keepalive(keep)
            assert token is None
            return outs

        mlir.register_lowering(prim, rule)
        f = primax.jit(prim.bind)
        assert f(S) == [6] and f(X[0]) == [3] and called == [2, 1]


class NoteEffect(Effect):
    ordered = True

    def __eq__(self, other: object) -> bool:
        return type(other) is NoteEffect

    def __hash__(self) -> int:
        return hash(NoteEffect)


def test_ordered_effects() -> None:
    effect = NoteEffect()
    notes: list[float] = []
    forgets: list[bool] = []
    prim = Primitive("note")
    prim.multiple_results = True
    prim.def_effectful_abstract_eval(lambda x: ([], {effect}))

    def rule(ctx, x):
        _, token, _ = mlir.emit_python_callback(
            ctx, lambda v: notes.append(float(v)), ctx.tokens_in.get(effect), [x], ctx.avals_in,
            [], has_side_effect=True,
        )  # fmt: skip
        if not forgets:
            ctx.set_tokens_out(mlir.TokenSet({effect: token}))
        return []

    mlir.register_lowering(prim, rule)

    def f(x):
        prim.bind(x)
        prim.bind(lax.neg(x))
        return x

    assert primax.make_jaxpr(f)(S).effects == {effect}
    with pytest.raises(ValueError, match=r"lowerable_effects.add_type"):
        primax.jit(f)(S)
    mlir.lowerable_effects.add_type(NoteEffect)
    assert mlir.lowerable_effects.contains(effect)
    assert mlir.lowerable_effects.filter_not_in([effect]) == []
    assert primax.jit(f)(S) == 2
    primax.effects_barrier()
    assert notes == [2, -2]
    forgets.append(True)
    with pytest.raises(ValueError, match=r"note must call ctx\.set_tokens_out"):
        primax.jit(lambda x: f(lax.neg(x)))(S)


def test_modules() -> None:
    jaxpr = primax.make_jaxpr(lambda x: lax.add(lax.sin(x), X))(X)
    lowered = mlir.lower_jaxpr_to_module(
        "sines", jaxpr, num_const_args=0, in_avals=jaxpr.in_avals, out_avals=jaxpr.out_avals,
        ordered_effects=[], platforms=("cpu",), backend=None,
        axis_context=mlir.ShardingContext(1), donated_args=[False],
        lowering_parameters=mlir.LoweringParameters(),
    )  # fmt: skip
    text = mlir.module_to_string(lowered.module)
    assert "module @sines" in text and "stablehlo.sine" in text
    assert "(%arg0: tensor<3xf32>" in text and lowered.host_callbacks == []
    assert mlir.module_to_bytecode(lowered.module)[:4] == b"ML\xefR"
    with pytest.raises(NotImplementedError, match="arg_shardings"):
        mlir.lower_jaxpr_to_module("m", jaxpr, platforms=("cpu",), arg_shardings=[1])
    with pytest.raises(NotImplementedError, match="one platform"):
        mlir.lower_jaxpr_to_module("m", jaxpr, platforms=("cpu", "tpu"))

    ctx = mlir.ModuleContext(platforms=("cpu",))
    function = mlir.lower_jaxpr_to_fun(
        ctx, "first", jaxpr, [], num_const_args=0, in_avals=[], out_avals=[]
    )
    assert "func.func private @first" in mlir.module_to_string(ctx.module)
    assert function.name.value == "first"
    for name in ("second", "second_0"):
        assert mlir.merge_mlir_modules(ctx.module, "second", lowered.module) == name
    assert ctx.module.operation.verify()
    assert "private @second_0" in mlir.module_to_string(ctx.module)
    other = mlir.make_ir_context()
    with other, ir.Location.unknown(other):
        module = ir.Module.parse("module { func.func public @main() { return } }")
    assert mlir.merge_mlir_modules(ctx.module, "third", module) == "third"
    assert mlir.merge_mlir_modules(ctx.module, "first", module) == "first_0"
    assert mlir.ModuleContext(platforms=("cpu",)).replace(platforms=("tpu",)).platforms == ("tpu",)


def test_inlined_jaxprs() -> None:
    jaxpr = primax.make_jaxpr(lambda x: lax.mul(x, X))(X)
    prim = Primitive("inline")
    prim.multiple_results = True
    prim.def_abstract_eval(lambda x: [x])

    def rule(ctx, x):
        consts = [mlir.ir_constant(c) for c in jaxpr.consts]
        outs, tokens = mlir.jaxpr_subcomp(
            ctx.module_context, jaxpr, ctx.name_stack, ctx.tokens_in, consts, x,
            dim_var_values=[], const_lowering={}, outer_traceback=None,
        )  # fmt: skip
        assert len(tokens) == 0
        return outs

    mlir.register_lowering(prim, rule)
    assert np.array_equal(primax.jit(prim.bind)(X)[0], X * X)


def test_module_serialization() -> None:
    from primax.extend import mlir as extend_mlir

    module = primax.jit(lax.sin).lower(X).compiler_ir()
    data = extend_mlir.serialize_portable_artifact(str(module).encode(), "1.0.0")
    again = extend_mlir.deserialize_portable_artifact(data, extend_mlir.context)
    assert "sine" in str(again)
    assert extend_mlir.tensor_type((2,), np.dtype("float32")) is not None
    assert extend_mlir.lower_with_sharding_in_types(None, "op", typeof(X)) == "op"
    hlo_proto = primax.jit(lax.sin).lower(X).compiler_ir("hlo")
    assert extend_mlir.hlo_to_stablehlo(hlo_proto.as_serialized_hlo_module_proto())
    with pytest.raises(AttributeError, match="no_such"):
        extend_mlir.no_such


def test_other_names() -> None:
    devices = np.array(primax.devices()[:1])
    options = pxla.create_compile_options(None, False, (True,), (True,), None, devices, None)
    assert options.num_partitions == 1
    assert isinstance(primax.devices()[0].client, xla.Backend)
    assert mlir.Value is ir.Value and mlir.ir is ir
    assert {"ad", "mlir"} <= set(dir(primax.interpreters)) and "Value" in dir(mlir)
    with pytest.raises(AttributeError, match="no_such"):
        primax.interpreters.no_such


def test_placement_of_types_without_devices() -> None:
    sharding = typeof(X).sharding
    assert all(entry is None for entry in sharding.spec)
    assert sharding.mesh.empty and sharding.mesh.axis_names == () and not sharding.mesh.shape


def test_derivative_of_a_call_without_derivatives_of_results() -> None:
    call_p = create_call_primitive("acme_call")
    jaxpr = primax.make_jaxpr(lambda x: lax.convert_element_type(x > 0, np.float32))(S)
    f = primax.jit(lambda x: x + call_p.bind(x, call_jaxpr=jaxpr)[0])
    assert primax.grad(f)(np.float32(2)) == 1


def test_lower_fun_of_a_function_with_references():
    def increment(x):
        ref = primax.new_ref(x)
        ref[...] = lax.add(ref[...], x)
        return ref[...]

    p = Primitive("increment_by_itself")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(increment, multiple_results=False))
    assert primax.jit(p.bind)(np.ones(2, np.float32)).tolist() == [2.0, 2.0]
