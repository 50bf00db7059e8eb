"""Primitives and rules written for the reference behave alike under both libraries.

Each case takes a library under the reference's names: ``m.jax``, ``m.core`` (``jax.extend.core``),
``m.ad``, ``m.batching``, ``m.mlir``, ``m.hlo``. It returns a tree of results, or raises.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core
import jax.extend.mlir.dialects.stablehlo
import jax.interpreters.ad
import jax.interpreters.batching
import jax.interpreters.mlir
import jax.interpreters.xla
import numpy as np
import pytest

import primax
import primax.extend.core
import primax.extend.mlir.dialects.stablehlo
import primax.interpreters.ad
import primax.interpreters.batching
import primax.interpreters.mlir
import primax.interpreters.xla


def _side(root: Any) -> types.SimpleNamespace:
    inside = root.interpreters
    return types.SimpleNamespace(
        jax=root, lax=root.lax, core=root.extend.core, ad=inside.ad, batching=inside.batching,
        mlir=inside.mlir, xla=inside.xla, hlo=root.extend.mlir.dialects.stablehlo,
        ShapedArray=root.core.ShapedArray,
    )  # fmt: skip


THEIRS, OURS = _side(jax), _side(primax)

Program = Callable[[types.SimpleNamespace], Any]
CASES = []
X = np.arange(1.0, 4.0, dtype=np.float32)
Y = np.arange(6.0, dtype=np.float32).reshape(2, 3)
S = np.float32(2.0)


def case(fun: Program) -> Program:
    CASES.append(pytest.param(fun, id=fun.__name__))
    return fun


@pytest.mark.parametrize("fun", CASES)
def test_same_results(fun: Program) -> None:
    theirs, their_tree = jax.tree.flatten(fun(THEIRS))
    ours, our_tree = jax.tree.flatten(fun(OURS))
    assert our_tree == their_tree
    for o, t in zip(ours, theirs):
        if isinstance(t, (str, bool, type(None))):
            assert o == t
            continue
        assert np.shape(o) == np.shape(t)
        if hasattr(t, "dtype") and hasattr(o, "dtype"):
            assert o.dtype == t.dtype
        np.testing.assert_allclose(np.asarray(o), np.asarray(t), rtol=1e-6, atol=1e-6)


def multiply_add(m: types.SimpleNamespace, how: str) -> Any:
    """The tutorial's primitive, with all rules."""
    prim = m.core.Primitive("multiply_add")
    prim.def_impl(lambda x, y, z: m.lax.add(m.lax.mul(x, y), z))
    prim.def_abstract_eval(lambda x, y, z: m.ShapedArray(x.shape, x.dtype))

    def by_hlo(ctx, x, y, z):
        return [m.hlo.add(m.hlo.multiply(x, y), z)]

    by_fun = m.mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False)
    if how == "both":
        m.mlir.register_lowering(prim, by_hlo, platform="cpu")
        m.mlir.register_lowering(prim, lambda *_: 1 / 0)
    else:
        m.mlir.register_lowering(prim, by_hlo if how == "hlo" else by_fun)

    def jvp(primals, tangents):
        x, y, z = primals
        zeros = lambda t: m.lax.full_like(x, 0) if type(t) is m.ad.Zero else t
        xt, yt, zt = map(zeros, tangents)
        return prim.bind(x, y, z), prim.bind(xt, y, prim.bind(x, yt, zt))

    def transpose(ct, x, y, z):
        zero = m.ad.instantiate_zeros(m.ad.zeros_like_aval(m.jax.typeof(ct)))
        return [
            prim.bind(ct, y, zero) if m.ad.is_undefined_primal(x) else None,
            prim.bind(x, ct, zero) if m.ad.is_undefined_primal(y) else None,
            ct if m.ad.is_undefined_primal(z) else None,
        ]

    def batch(args, dims):
        size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
        return prim.bind(*(m.batching.bdim_at_front(a, d, size) for a, d in zip(args, dims))), 0

    m.ad.primitive_jvps[prim] = jvp
    m.ad.primitive_transposes[prim] = transpose
    m.batching.primitive_batchers[prim] = batch
    return prim.bind


def uses(m: types.SimpleNamespace, f: Any) -> Any:
    """Apply a function of three arrays of one shape under transformations and in loops."""
    j = m.jax
    cube = lambda x: f(x, f(x, x, x), x)
    return [
        f(X, X, X),
        j.jit(f)(X, X, X),
        j.grad(f, (0, 1, 2))(S, S, S),
        j.jit(j.grad(f, (0, 1, 2)))(S, S, S),
        j.vmap(f)(Y, Y, Y),
        j.vmap(f, (0, None, None))(Y, X, X),
        j.jit(j.vmap(f, (1, 0, None), 1))(Y, Y.T, np.ones(2, np.float32)),
        j.vmap(j.grad(cube))(X),
        j.jit(j.vmap(j.value_and_grad(cube)))(X),
        j.jvp(cube, (X,), (X,)),
        j.hessian(cube)(S),
        j.jacrev(cube)(X),
        j.jit(j.jacfwd(cube))(X),
        j.linear_transpose(lambda z: f(S, S, z), S)(S),
        j.linear_transpose(lambda x: f(x, S, x), S)(S),
        m.lax.scan(lambda c, x: (f(c, x, x), f(x, x, x)), S, X),
        j.grad(lambda s: m.lax.scan(lambda c, x: (f(c, x, x), None), s, X)[0])(S),
        j.jit(j.grad(lambda s: m.lax.cond(s > 1, lambda: f(s, s, s), lambda: s)))(S),
        j.checkpoint(cube)(S),
        j.grad(j.checkpoint(cube))(S),
        m.lax.fori_loop(0, 3, lambda i, c: f(c, S, c), S),
        j.linearize(cube, S)[1](S),
        str(j.make_jaxpr(f)(S, S, S)),
    ]


@case
def by_hlo(m):
    return uses(m, multiply_add(m, "hlo"))


@case
def by_fun(m):
    return uses(m, multiply_add(m, "fun"))


@case
def by_platform(m):
    return uses(m, multiply_add(m, "both"))


def simple(m: types.SimpleNamespace, name: str, fun: Any) -> Any:
    prim = m.core.Primitive(name)
    prim.def_impl(fun)
    prim.def_abstract_eval(lambda *avals, **params: avals[0])
    m.mlir.register_lowering(prim, m.mlir.lower_fun(fun, multiple_results=False))
    return prim


@case
def families(m):
    j = m.jax
    product = simple(m, "product", m.lax.mul)
    m.ad.defbilinear(
        product, lambda ct, x, y: product.bind(ct, y), lambda ct, x, y: product.bind(x, ct)
    )
    m.batching.defbroadcasting(product)
    double = simple(m, "double", lambda x: m.lax.mul(x, m.lax.full_like(x, 2)))
    m.ad.deflinear(double, lambda ct: [double.bind(ct)])
    m.batching.defvectorized(double)
    halve = simple(m, "halve", lambda x: m.lax.div(x, m.lax.full_like(x, 2)))
    m.ad.deflinear2(halve, lambda ct, x: [halve.bind(ct)])
    m.batching.defvectorized(halve)
    sine = simple(m, "sine", m.lax.sin)
    m.ad.defjvp(sine, lambda t, x: m.lax.mul(t, m.lax.cos(x)))
    m.batching.defvectorized(sine)
    power = simple(m, "expo", m.lax.exp)
    m.ad.defjvp2(power, lambda t, out, x: m.lax.mul(t, out))
    m.batching.defvectorized(power)
    total = m.core.Primitive("total")
    add_up = lambda x, *, axes: m.lax.reduce_sum_p.bind(x, axes=axes, out_sharding=None)
    total.def_abstract_eval(
        lambda x, *, axes: m.ShapedArray(
            tuple(n for i, n in enumerate(x.shape) if i not in axes), x.dtype
        )
    )
    total.def_impl(add_up)
    m.mlir.register_lowering(total, m.mlir.lower_fun(add_up, multiple_results=False))
    m.batching.defreducer(total)
    f = lambda x, y: double.bind(product.bind(sine.bind(x), halve.bind(power.bind(y))))
    return [
        f(S, S),
        j.grad(f, (0, 1))(S, S),
        j.jit(j.grad(f, (0, 1)))(S, S),
        j.hessian(f, (0, 1))(S, S),
        j.vmap(j.grad(f), (0, None))(X, S),
        j.jit(j.vmap(j.vmap(f)))(Y, Y),
        j.vmap(lambda x: total.bind(x, axes=(0,)), 1)(Y),
        j.vmap(lambda x: total.bind(x, axes=(1,)))(Y.reshape(1, 2, 3)),
    ]


@case
def several_results(m):
    prim = m.core.Primitive("divmod_like")
    prim.multiple_results = True
    impl = lambda x, *, by: (m.lax.div(x, np.float32(by)), m.lax.rem(x, np.float32(by)))
    prim.def_impl(impl)
    prim.def_abstract_eval(lambda x, *, by: (x, x))
    m.mlir.register_lowering(prim, m.mlir.lower_fun(impl, multiple_results=True))
    m.ad.primitive_jvps[prim] = lambda p, t, *, by: (
        prim.bind(*p, by=by),
        [m.lax.mul(t[0], np.float32(1 / by)), m.ad.Zero(m.jax.typeof(p[0]))],
    )
    m.batching.primitive_batchers[prim] = lambda a, d, *, by: (prim.bind(*a, by=by), (d[0], d[0]))
    f = lambda x: tuple(prim.bind(x, by=2))
    j = m.jax
    return [
        f(S),
        j.jit(f)(X),
        j.jvp(f, (S,), (S,)),
        j.grad(lambda x: f(x)[0])(S),
        j.grad(lambda x: f(x)[1])(S),
        j.vmap(f)(Y),
    ]


@case
def symbolic_zeros_that_rules_see(m):
    seen = []
    prim = m.core.Primitive("seen")
    prim.def_impl(lambda x, y: m.lax.mul(x, y))
    prim.def_abstract_eval(lambda x, y: x)
    m.mlir.register_lowering(prim, m.mlir.lower_fun(m.lax.mul, multiple_results=False))

    def jvp(primals, tangents):
        seen.append(str([type(t) is m.ad.Zero for t in tangents]))
        x, y = primals
        terms = [m.lax.mul(t, o) for t, o in zip(tangents, (y, x)) if type(t) is not m.ad.Zero]
        return prim.bind(x, y), sum(terms[1:], terms[0])

    m.ad.primitive_jvps[prim] = jvp
    j = m.jax
    out = [
        j.grad(prim.bind)(S, S),
        j.grad(prim.bind, 1)(S, S),
        j.jvp(prim.bind, (S, S), (S, S)),
        j.jit(j.grad(prim.bind, (0, 1)))(S, S),
    ]
    return out, seen


@case
def functions_of_ad(m):
    j, ad = m.jax, m.ad
    aval = j.typeof(S)
    jaxpr = j.make_jaxpr(lambda x, y: (x * 2 + y, y))(S, S)
    program, nonzero = ad.jvp_jaxpr(jaxpr, [True, False], False)
    forced, all_nonzero = ad.jvp_jaxpr(jaxpr, [True, False], True)
    return [
        nonzero,
        all_nonzero,
        str(program),
        len(forced.out_avals),
        str(ad.Zero(aval)),
        ad.Zero(aval).instantiate(),
        ad.instantiate_zeros(ad.Zero(aval)),
        ad.add_tangents(ad.Zero(aval), S),
        ad.add_jaxvals(S, S),
        j.tree.leaves([ad.Zero(aval), ad.UndefinedPrimal(aval)]),
        ad.is_undefined_primal(ad.UndefinedPrimal(aval)),
        ad.primitive_jvps[m.lax.sin_p]([S], [S], accuracy=None),
        m.lax.sin_p in ad.primitive_jvps,
        m.lax.sin_p in ad.primitive_transposes,
        m.lax.sin_p in m.batching.fancy_primitive_batchers,
    ]


@case
def functions_of_batching(m):
    b = m.batching
    return [
        b.bdim_at_front(Y, 1, 3),
        b.bdim_at_front(X, None, 2),
        b.broadcast(Y, 4, 1, None),
    ]


@case
def functions_of_mlir(m):
    prim = m.core.Primitive("shown")
    prim.def_abstract_eval(lambda x, y: x)
    shown = []

    def rule(ctx, x, y):
        c, mlir = ctx.module_context, m.mlir
        shown.extend(
            str(v)
            for v in (
                mlir.aval_to_ir_type(c, ctx.avals_in[0]),
                [str(t) for t in mlir.aval_to_ir_types(c, ctx.avals_in[1])],
                mlir.ir_constant(np.float32(2)).type,
                mlir.ir_constant(X).type,
                mlir.ir_constant(np.bool_(True)).type,
                mlir.ir_constants(Y)[0].type,
                mlir.i32_attr(3),
                mlir.i64_attr(4),
                mlir.dense_int_elements([1, 2]),
                mlir.dense_int_array([1, 2]),
                mlir.dtype_to_ir_type(np.dtype("int8")),
                mlir.dtype_to_ir_type(np.dtype("complex64")),
                *map(mlir.ir_attribute, (3, 2.5, "a", True, [1, 2.0], {"k": "v"}, X)),
                mlir.token_type(),
                c.platforms,
                type(ctx).__name__,
                type(c).__name__,
                ctx.primitive,
                len(ctx.avals_out),
            )
        )
        (out,) = mlir.lower_fun(lambda a, b: a * b, multiple_results=False)(ctx, x, y)
        return (out,)

    m.mlir.register_lowering(prim, rule)
    return m.jax.jit(prim.bind)(X, X), shown


@case
def constants_of_channels(m):
    names = ("DEVICE_TO_DEVICE_TYPE", "SEND_TO_HOST_TYPE", "RECV_FROM_HOST_TYPE")
    return [getattr(m.mlir, n) for n in names]


@case
def applied(m):
    return m.xla.apply_primitive(m.lax.sin_p, S, accuracy=None)


ERRORS = []


def error(fun: Program) -> Program:
    ERRORS.append(pytest.param(fun, id=fun.__name__))
    return fun


@pytest.mark.parametrize("fun", ERRORS)
def test_same_errors(fun: Program) -> None:
    results = []
    for m in (THEIRS, OURS):
        with pytest.raises(Exception) as info:
            fun(m)
        results.append(info.value)
    theirs, ours = results
    assert isinstance(ours, type(theirs))


def bare(m: types.SimpleNamespace) -> Any:
    prim = m.core.Primitive("bare")
    prim.def_impl(lambda x: x)
    prim.def_abstract_eval(lambda x: x)
    return prim.bind


@error
def no_impl(m):
    m.core.Primitive("bare").bind(S)


@error
def no_abstract_rule(m):
    m.jax.jit(m.core.Primitive("bare").bind)(S)


@error
def no_lowering(m):
    m.jax.jit(bare(m))(S)


@error
def no_derivative(m):
    m.jax.grad(bare(m))(S)


@error
def no_batching_rule(m):
    m.jax.vmap(bare(m))(X)


@error
def no_transpose(m):
    m.jax.linear_transpose(bare(m), S)(S)


@error
def unknown_platform(m):
    m.mlir.register_lowering(m.lax.sin_p, lambda ctx, x: [x], platform="nonsense")


@error
def no_transpose_rule(m):
    m.ad.get_primitive_transpose(m.lax.sin_p)
