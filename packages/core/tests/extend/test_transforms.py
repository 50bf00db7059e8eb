"""Functions of the extension API on jaxprs: what they compute, and errors about their arguments."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend import (
    Axis,
    Primitive,
    abstract,
    batch,
    batch_jaxpr,
    close_over,
    dce_jaxpr,
    eval_jaxpr,
    expand,
    expanded,
    jvp_jaxpr,
    linearize_jaxpr,
    stage,
    staged,
    transpose_jaxpr,
    typeof,
)

X = np.arange(3.0, dtype=np.float32)
F32 = typeof(X)
SINE = stage(lambda x, y: [lax.mul(lax.sin(x), y)], [F32, F32])


def test_transformed_jaxprs_take_lists_and_tuples():
    jaxpr, mask = jvp_jaxpr(SINE, [True, False], [True])
    assert mask == (True,)
    np.testing.assert_allclose(eval_jaxpr(jaxpr, (X, X, X))[1], np.cos(X) * X * X, rtol=1e-6)
    linear = linearize_jaxpr(SINE, [False, True])
    residuals = linear.residual_values([X, X], eval_jaxpr(linear.forward, [X, X]))
    assert linear.linear is not None
    (out,) = eval_jaxpr(linear.linear, [*residuals, X])
    np.testing.assert_allclose(out, np.sin(X) * X, rtol=1e-6)
    transposed, mask = transpose_jaxpr(SINE, [False, True])
    assert mask == (False, True)
    np.testing.assert_allclose(eval_jaxpr(transposed, [X, X])[0], np.sin(X) * X, rtol=1e-6)
    batched, dims = batch_jaxpr(SINE, [0, None], Axis(2))
    assert dims == (0,)
    assert eval_jaxpr(batched, [np.stack([X, X]), X])[0].shape == (2, 3)
    part, used = dce_jaxpr(stage(lambda x, y: [x, lax.sin(y)], [F32, F32]), [True, False])
    assert used == (True, False) and not part.eqns


BAD = [
    (lambda: stage(lambda x: lax.sin(x), [F32]), TypeError, "a function that returns a list"),
    (lambda: stage(lambda x: [lax.sin(x)], [X]), TypeError, "avals of the arguments, got"),
    (lambda: stage(lambda x: [lax.sin(x)], F32), TypeError, "a sequence of avals, got"),
    (lambda: stage(lambda x: ["sine"], [F32]), TypeError, "'sine'"),
    (lambda: stage(X, [F32]), TypeError, "stage takes a function, got"),
    (lambda: eval_jaxpr(SINE, [X]), ValueError, "takes 2 arguments, got 1"),
    (lambda: eval_jaxpr(SINE, [X, X, X]), ValueError, "takes 2 arguments, got 3"),
    (lambda: eval_jaxpr(SINE, [X, X[:2]]), TypeError, r"1 .* type f32\[3\], got .* f32\[2\]"),
    (lambda: eval_jaxpr(SINE, [X, np.arange(3)]), TypeError, r"1 .* f32\[3\], got .* i32\[3\]"),
    (lambda: eval_jaxpr(lambda x: x, [X]), TypeError, "takes a Jaxpr, got <function"),
    (lambda: jvp_jaxpr(SINE, [True]), ValueError, "mask has 1 entries, but the jaxpr has 2"),
    (lambda: jvp_jaxpr(SINE, True), TypeError, "a sequence of Booleans as mask, got True"),
    (lambda: jvp_jaxpr(SINE, [X, X]), TypeError, "takes Booleans in mask, got array"),
    (lambda: jvp_jaxpr(SINE, [True, True], [True] * 2), ValueError, "instantiate_outs has 2 ent"),
    (lambda: linearize_jaxpr(SINE, ()), ValueError, "mask has 0 entries"),
    (lambda: linearize_jaxpr(SINE, [True] * 2, [1]), TypeError, "in instantiate_outs, got 1"),
    (lambda: transpose_jaxpr(SINE, [False]), ValueError, "linear has 1 entries"),
    (lambda: transpose_jaxpr(SINE, [True] * 2, ()), ValueError, "cotangents has 0 entries"),
    (lambda: batch_jaxpr(SINE, (0, 0), 3), TypeError, r"takes an Axis, such as Axis\(8\), got 3"),
    (lambda: batch_jaxpr(SINE, 0, Axis(3)), TypeError, "mapped axes as dims, got 0"),
    (lambda: batch_jaxpr(SINE, (0,), Axis(3)), ValueError, "dims has 1 entries"),
    (lambda: batch_jaxpr(SINE, (0, 2), Axis(3)), ValueError, "entry 2, but .* from 0 to 1"),
    (lambda: batch_jaxpr(SINE, (0, -1), Axis(3)), ValueError, "entry -1"),
    (lambda: batch_jaxpr(SINE, (0, 0), Axis(3), (0, 0)), ValueError, "out_dims has 2 entries"),
    (lambda: dce_jaxpr(SINE, (True, True)), ValueError, "used_outputs has 2 entries"),
    (lambda: dce_jaxpr(SINE, (True,), (True,)), ValueError, "keep_inputs has 1 entries"),
    (lambda: expanded(lax.sin_p, [X], {}), TypeError, r"takes avals, such as typeof"),
    (lambda: staged(X, (X,), "foreach"), TypeError, "foreach takes a function, got array"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "error", "text"), BAD)
def test_bad_arguments_are_named(run, error, text):
    with pytest.raises(error, match=text):
        run()


# A primitive of higher order


foreach_p = Primitive("foreach", cache_on=lambda params: params["jaxpr"].cache)
foreach_p.rule(abstract)(lambda *args, jaxpr: args[-1])


@foreach_p.rule(expand)
def _expand(*args, jaxpr):
    *consts, xs = args
    return lax.scan(lambda _, x: (None, eval_jaxpr(jaxpr, [*consts, x])[0]), None, xs)[1]


traces = []


def foreach(body, xs):
    element = typeof(xs).update(shape=xs.shape[1:])
    traced = staged(body, (element,), "foreach")
    return foreach_p.bind(*traced.consts, xs, jaxpr=traced.jaxpr)


def body(x):
    traces.append(x)
    return lax.sin(x)


def test_a_body_is_traced_once():
    traces.clear()
    for _ in range(3):
        np.testing.assert_allclose(foreach(body, X), np.sin(X), rtol=1e-6)
        mapped = px.vmap(lambda x: foreach(body, x))(X[None])
        np.testing.assert_allclose(mapped, np.sin(X[None]), rtol=1e-6)
    assert len(traces) == 1
    np.testing.assert_allclose(foreach(body, X.astype(np.float16)), np.sin(X), rtol=1e-2)
    assert len(traces) == 2
    px.clear_caches()
    foreach(body, X)
    assert len(traces) == 3


def test_bodies_may_close_over_arrays_and_tracers():
    scale = lax.full((), 2.0)

    def f(s):
        return lax.reduce_sum(foreach(lambda x: lax.mul(x, s), X), (0,))

    assert float(f(scale)) == 6
    assert float(px.grad(f)(np.float32(5))) == 3
    assert float(px.jit(f)(np.float32(5))) == 15
    np.testing.assert_array_equal(px.vmap(f)(X), X * 3)


def test_what_is_remembered_is_freed_with_the_function():
    class Heavy:
        pass

    def use():
        heavy = Heavy()

        def inner(x):
            heavy
            return lax.sin(x)

        foreach(inner, X)
        return weakref.ref(inner), weakref.ref(heavy)

    refs = use()
    gc.collect()
    assert [r() for r in refs] == [None, None]


def test_options_and_tracing_contexts_are_part_of_the_key():
    def precise(x):
        return lax.convert_element_type(x, float)

    assert staged(precise, (1.0,), "f").jaxpr.out_avals[0].dtype == np.float32
    with px.enable_x64(True):
        assert staged(precise, (1.0,), "f").jaxpr.out_avals[0].dtype == np.float64


def test_close_over_gives_the_constants_as_operands():
    jaxpr, consts = close_over(stage(lambda x: [lax.add(x, X)], [F32]))
    assert len(jaxpr.invars) == 2 and not jaxpr.consts and len(consts) == 1
    np.testing.assert_array_equal(eval_jaxpr(jaxpr, [*consts, X])[0], X + X)


def test_rules_added_after_derivation_are_used():
    """Jaxprs derived from the expansion are in the cache of the jaxpr, not of the primitive."""
    late_p = Primitive("late", cache_on=lambda params: params["jaxpr"].cache)
    late_p.rule(expand)(lambda *args, jaxpr: eval_jaxpr(jaxpr, args)[0])

    def apply(x):
        traced = staged(lax.sin, (x,), "late")
        return late_p.bind(*traced.consts, x, jaxpr=traced.jaxpr)

    names = lambda: [e.primitive.name for e in px.make_jaxpr(px.vmap(apply))(X).eqns]
    assert names() == ["sin"]
    late_p.rule(batch)(lambda axis, args, dims, *, jaxpr: (lax.cos(args[0]), dims[0]))
    assert names() == ["cos"]
