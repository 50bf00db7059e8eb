"""Primitives whose rules run for each call, on concrete values."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import (
    eval_shape,
    float0,
    grad,
    hessian,
    jit,
    jvp,
    lax,
    linear_transpose,
    make_jaxpr,
    vjp,
    vmap,
)
from primax_core.extend import (
    JVPTracer,
    MissingRule,
    Primitive,
    Zero,
    abstract,
    batch,
    jvp as jvp_kind,
    lower,
    stage,
    transpose,
    typeof,
)
from primax_core.extend.traces import bind_directly

X = np.arange(1.0, 4.0, dtype=np.float32)


class Direct(Primitive):
    __slots__ = ()

    def bind(self, *args, **params):
        return bind_directly(self, args, params)


def scale_primitive(calls):
    """``x * by[0]``, where ``by`` is a list, with all rules noting what they are given."""
    scale_p = Direct("scale", any_params=True)
    scale_p.rule(abstract)(lambda x, *, by: x)
    scale_p.rule(lower)(
        lambda ctx, x, *, by: ctx.call(lambda x: lax.mul(x, np.asarray(by[0], x.dtype)), x)
    )

    @scale_p.rule(jvp_kind)
    def _jvp_kind(primals, tangents, *, by):
        (x,), (t,) = primals, tangents
        calls.append(("jvp", x))
        return scale_p.bind(x, by=by), scale_p.bind(t, by=by)

    @scale_p.rule(transpose)
    def _transpose(ct, x, *, by):
        calls.append(("transpose", by))
        return [scale_p.bind(ct, by=by)]

    @scale_p.rule(batch)
    def _batch(axis, args, dims, *, by):
        calls.append(("batch", axis.size))
        return scale_p.bind(*args, by=by), dims[0]

    return lambda x: scale_p.bind(x, by=[3.0])


def test_parameters_need_not_be_hashable():
    f = scale_primitive([])
    assert np.array_equal(f(X), 3 * X)
    assert np.array_equal(jit(f)(X), 3 * X)
    assert np.array_equal(vmap(f)(X), 3 * X)
    assert np.array_equal(jit(vmap(grad(lambda x: f(f(x)))))(X), [9, 9, 9])
    assert hessian(lambda x: f(x) * f(x))(X[0]) == 18
    assert np.array_equal(linear_transpose(f, X)(X)[0], 3 * X)
    assert eval_shape(f, X).shape == (3,)
    (p, t) = jvp(f, (X,), (X,))
    assert np.array_equal(p, 3 * X) and np.array_equal(t, 3 * X)
    assert lax.scan(lambda c, _: (f(c), None), X[0], None, length=3)[0] == 27
    assert grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])(X[0]) == 27
    assert "scale[by=[3.0]]" in str(make_jaxpr(f)(X))


def test_without_leave_they_must_be():
    prim = Primitive("strict")
    prim.rule(abstract)(lambda x, *, by: x)
    with pytest.raises(TypeError, match="parameters of primitive strict must be hashable"):
        make_jaxpr(lambda x: prim.bind(x, by=[1]))(X)


def test_rules_see_concrete_values_and_run_each_time():
    calls = []
    f = scale_primitive(calls)
    for _ in range(2):
        assert grad(f)(X[1]) == 3
    assert [c for c in calls if c[0] == "jvp"] == [("jvp", 2.0)] * 2
    calls.clear()
    vmap(f)(X)
    vmap(f)(X)
    assert calls == [("batch", 3)] * 2
    calls.clear()
    jvp(lambda y: jvp(f, (y,), (1.0,))[1] + f(y), (X[0],), (1.0,))
    assert isinstance(calls[0][1], JVPTracer)
    assert calls[0][1].tangent == 1.0


def test_a_pullback_may_be_called_again():
    _, pull = vjp(scale_primitive([]), X)
    for ct in (X, 2 * X):
        assert np.array_equal(pull(ct)[0], 3 * ct)


def test_several_results_and_symbolic_zeros():
    split_p = Direct("split_and_count", multiple_results=True, any_params=True)
    split_p.rule(abstract)(lambda x, y: [x, typeof(1)])
    split_p.rule(lower)(lambda ctx, x, y: ctx.call(lambda x, y: [lax.mul(x, y), 1], x, y))
    split_p.rule(batch)(lambda axis, args, dims: (split_p.bind(*args), [dims[0], None]))
    zeros_seen = []

    @split_p.rule(jvp_kind)
    def _jvp_kind(primals, tangents):
        zeros_seen.append([type(t) is Zero for t in tangents])
        outs = split_p.bind(*primals)
        dot = lax.mul(tangents[0], primals[1])
        return outs, (dot, np.zeros((), float0))

    f = lambda x, y: split_p.bind(x, y)[0]
    assert grad(f)(2.0, 5.0) == 5
    assert jit(grad(f))(2.0, 5.0) == 5
    assert jvp(lambda x: split_p.bind(x, 5.0), (2.0,), (1.0,))[1][1].dtype == float0
    assert zeros_seen == [[False, True]] * 3
    values, count = vmap(lambda x: split_p.bind(x, X[1]), out_axes=[0, None])(X)
    assert values.shape == (3,) and count.shape == ()


def test_a_missing_rule_is_named():
    bare_p = Direct("bare", any_params=True)
    bare_p.rule(abstract)(lambda x: x)
    with pytest.raises(MissingRule, match=r"bare .*no jvp rule"):
        grad(bare_p.bind)(1.0)
    with pytest.raises(MissingRule, match=r"bare .*no jvp rule"):
        jvp(bare_p.bind, (1.0,), (1.0,))
    with pytest.raises(MissingRule, match=r"bare .*no batch rule"):
        vmap(bare_p.bind)(X)


def test_types_stand_for_arguments_where_functions_are_traced():
    aval = typeof(X)
    f = scale_primitive([])
    assert eval_shape(f, aval).shape == (3,)
    assert make_jaxpr(f)(aval).in_avals == [aval]
    assert np.array_equal(linear_transpose(f, aval)(X)[0], 3 * X)
    assert stage(lambda x: [f(x)], [aval]).out_avals == [aval]
