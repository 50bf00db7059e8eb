"""Jaxprs with references: text, types, effects, and discharge."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import primax_core as px
from primax_core import extend, lax, ref as r
from primax_core.extend import (
    AbstractRef,
    AccumEffect,
    MissingRule,
    Primitive,
    ReadEffect,
    ShapedArray,
    WriteEffect,
    abstract,
    discharge,
    discharge_jaxpr,
    effects,
    eval_jaxpr,
    run_state,
)
from primax_core.lax import composite
from test_support import assert_close

F32 = np.float32
X3 = np.array([1.0, 2.0, 3.0], F32)
SMALL = np.arange(6, dtype=F32).reshape(2, 3)
VECTOR = ShapedArray((3,), np.dtype(F32))


close = partial(assert_close, rtol=2e-5, atol=1e-6)


def uses(q, i, x):
    a = q[0], q[i], q[i, 1:], q[:, ::2], q[-1], q[0, 1:2], q[:, px.ds(i, 2)]
    q[i] = x
    r.addupdate(q, 0, x)
    old = r.swap(q, 1, x)
    q[0, i] = 2.0
    return *a, old


TEXT = """
{ lambda ; a:Ref{f32[2,3]} b:i32[] c:f32[3]. let
    d:f32[3] <- a[0,:]
    e:f32[3] <- a[b,:]
    f:f32[2] <- a[b,1:]
    g:f32[2,2] <- a[:,::2]
    h:f32[3] <- a[-1,:]
    i:f32[1] <- a[0,1:2]
    j:f32[2,2] <- a[:,b:b+2]
    a[b,:] <- c
    a[0,:] += c
    k:f32[3], a[1,:] <- a[1,:], c
    a[0,b] <- 2.0:f32[]
  in (d, e, f, g, h, i, j, k) }
"""

LOCAL_TEXT = """
{ lambda ; a:f32[3]. let
    b:Ref{f32[3]} = new_ref[kind=None memory_space=None pin=False] a
    b[...] += a
    c:f32[3] = freeze b
    d:Ref{f32[3]} = empty_ref[memory_space=None pin=False ty=float32[3]]
    d[...] <- c
    e:f32[3] <- d[...]
    free_ref d
  in (e,) }
"""


def local(x):
    q = px.new_ref(x)
    r.addupdate(q, ..., x)
    y = px.freeze(q)
    e = px.empty_ref(px.typeof(y))
    e[...] = y
    out = e[...]
    px.free_ref(e)
    return out


class TestPrograms:
    def test_text(self):
        assert str(px.make_jaxpr(uses)(px.new_ref(SMALL), 1, X3)) == TEXT.strip()
        assert str(px.make_jaxpr(local)(X3)) == LOCAL_TEXT.strip()

    def test_types(self):
        jaxpr = px.make_jaxpr(uses)(px.new_ref(SMALL), 1, X3)
        extend.check_jaxpr(jaxpr)
        assert jaxpr.in_avals[0] is AbstractRef(ShapedArray((2, 3), np.dtype(F32)))
        wrong = jaxpr.eqns[0]
        bad = jaxpr.replace(
            eqns=[wrong.replace(outvars=[extend.Var(ShapedArray((4,), F32))])], outvars=[]
        )
        with pytest.raises(extend.JaxprCheckError, match="get"):
            extend.check_jaxpr(bad)

    def test_abstract_refs(self):
        ref = AbstractRef(VECTOR, "vmem")
        assert ref is AbstractRef(VECTOR, "vmem") is not AbstractRef(VECTOR)
        assert (ref.shape, ref.dtype, ref.ndim, ref.size, ref.weak_type) == ((3,), F32, 1, 3, False)
        assert repr(ref) == "Ref{float32[3]}" and ref.str_short() == "Ref{f32[3]}" and len(ref) == 3
        assert ref.update(shape=(4,)) is AbstractRef(VECTOR.update(shape=(4,)), "vmem")
        assert ref.update(memory_space=None) is AbstractRef(VECTOR)
        with pytest.raises(AttributeError, match="immutable"):
            ref.kind = 1

    def test_effects_name_the_argument(self):
        def f(x, a, b, c):
            a[...] = b[...]
            r.addupdate(c, ..., x)

        refs = [px.new_ref(X3) for _ in range(3)]
        expected = {WriteEffect(1), ReadEffect(1), ReadEffect(2), AccumEffect(3)}
        assert px.make_jaxpr(f)(X3, *refs).effects == expected
        jitted = px.make_jaxpr(px.jit(f))(X3, *refs)
        assert jitted.effects == jitted.eqns[0].effects == expected

    @pytest.mark.parametrize(
        "loop",
        [
            lambda a, b: lax.scan(lambda c, x: (r.set(b, ..., a[...]), (c, x))[1], 0, X3),
            lambda a, b: lax.while_loop(
                lambda i: a[0] < i, lambda i: (r.set(b, 0, F32(1)), i)[1], 0.0
            ),
            lambda a, b: lax.cond(True, lambda: a[0], lambda: (r.set(b, 0, F32(1)), b[1])[1]),
            lambda a, b: px.checkpoint(lambda x: (r.set(b, ..., x), a[...])[1])(X3),
        ],
        ids=["scan", "while", "cond", "checkpoint"],
    )
    def test_effects_propagate_from_sub_jaxprs(self, loop):
        actual = px.make_jaxpr(loop)(px.new_ref(X3), px.new_ref(X3)).effects
        assert (
            {ReadEffect(0), WriteEffect(1)}
            <= actual
            <= {ReadEffect(0), ReadEffect(1), WriteEffect(1)}
        )

    def test_local_references_have_no_effect_on_arguments(self):
        for f in (local, px.jit(local)):
            actual = px.make_jaxpr(f)(X3).effects
            assert not any(isinstance(e, extend.RefEffect) for e in actual)

    def test_dead_code_keeps_writes(self):
        def f(q, x):
            unused = q[0], lax.sin(x)
            q[1] = x
            lax.cond(q[0, 0] > 0, lambda: r.set(q, 0, x), lambda: None)
            del unused
            return x

        jaxpr = px.make_jaxpr(f)(px.new_ref(SMALL), X3)
        live_jaxpr, used = extend.dce_jaxpr(jaxpr, (False,))
        names = [e.primitive.name for e in live_jaxpr.eqns]
        assert "swap" in names and "cond" in names and used == (True, True)
        assert names.count("get") == 1 and "sin" not in names
        extend.check_jaxpr(live_jaxpr)
        assert live_jaxpr.effects == {ReadEffect(0), WriteEffect(0)}
        scanned = px.make_jaxpr(
            lambda q, x: lax.scan(lambda c, i: (r.set(q, 0, x), (c + 1, c))[1], 0, length=2)
        )(px.new_ref(SMALL), X3)
        live_jaxpr, used = extend.dce_jaxpr(scanned, (False, False))
        assert [e.primitive.name for e in live_jaxpr.eqns] == ["scan"] and used == (True, True)
        assert live_jaxpr.effects == {ReadEffect(0), WriteEffect(0)}

    def test_order_of_reads_and_writes(self):
        def f(q):
            a = q[0]
            q[0] = a + 1.0
            b = q[0]
            q[0] = b * 10.0
            return a, b, q[0]

        q = px.new_ref(X3)
        assert [float(v) for v in px.jit(f)(q)] == [1, 2, 20]
        assert [float(v) for v in f(q)] == [20, 21, 210]


class TestDischarge:
    def test_arguments_become_results(self):
        def f(q, x, p):
            q[0] = x
            return q[1] + p[0]

        jaxpr = px.make_jaxpr(f)(px.new_ref(SMALL), X3, px.new_ref(X3))
        pure = discharge_jaxpr(jaxpr)
        extend.check_jaxpr(pure)
        assert not pure.effects
        assert [a.shape for a in pure.in_avals] == [(2, 3), (3,), (3,)]
        out, q, p = eval_jaxpr(pure, [SMALL, X3 * 7, X3])
        close(out, SMALL[1] + 1)
        close(q, np.stack([X3 * 7, SMALL[1]]))
        close(p, X3)

    def test_partial_discharge(self):
        def f(a, b):
            a[0] = b[0]
            b[1] = a[1]

        jaxpr = px.make_jaxpr(f)(px.new_ref(X3), px.new_ref(X3))
        half = discharge_jaxpr(jaxpr, (False, True))
        extend.check_jaxpr(half)
        assert isinstance(half.in_avals[0], AbstractRef) and half.in_avals[1] is VECTOR
        assert half.effects == {ReadEffect(0), WriteEffect(0)} and len(half.outvars) == 1
        q = px.new_ref(X3)
        (b,) = eval_jaxpr(half, [q, X3 * 5])
        close(q[...], [5, 2, 3])
        close(b, [5, 2, 15])

    def test_local_references_vanish(self):
        for f in (local, px.jit(local), px.checkpoint(local)):
            pure = discharge_jaxpr(px.make_jaxpr(f)(X3))
            assert not pure.effects and "Ref" not in str(pure)
            close(eval_jaxpr(pure, [X3])[0], X3 * 2)

    def test_jaxprs_without_references_are_returned(self):
        jaxpr = px.make_jaxpr(lax.sin)(X3)
        assert discharge_jaxpr(jaxpr) is jaxpr

    def test_loops(self):
        def f(q, p):
            lax.scan(lambda c, i: (r.set(q, i, p[i]), (c, None))[1], 0, np.arange(3))
            lax.while_loop(lambda i: i < q[2], lambda i: (r.addupdate(q, 0, F32(1)), i + 1)[1], 0.0)
            lax.cond(q[0] > 0, lambda: r.set(p, 0, F32(9)), lambda: None)

        pure = discharge_jaxpr(px.make_jaxpr(f)(px.new_ref(X3 * 0), px.new_ref(X3)))
        extend.check_jaxpr(pure)
        assert not pure.effects and "Ref" not in str(pure)
        q, p = eval_jaxpr(pure, [X3 * 0, X3])
        close(q, [4, 2, 3])
        close(p, [9, 2, 3])
        # A reference that is only read is not a carry.
        scan = next(e for e in pure.eqns if e.primitive.name == "scan")
        assert (scan.params["num_consts"], scan.params["num_carry"]) == (1, 2)

    def test_constants_are_refused(self):
        q = px.new_ref(X3)
        with pytest.raises(ValueError, match="references among its constants"):
            discharge_jaxpr(px.make_jaxpr(lambda: q[0])())

    def test_custom_functions_keep_their_rules(self):
        @px.custom_vjp
        def f(x):
            q = px.new_ref(x)
            return px.freeze(q)

        f.defvjp(lambda x: (x, None), lambda _, g: (g * 7.0,))
        pure = discharge_jaxpr(px.make_jaxpr(f)(X3))
        assert pure.eqns[0].primitive.name == "custom_vjp_call" and not pure.effects
        grads = px.grad(lambda x: lax.reduce_sum(eval_jaxpr(pure, [x])[0], (0,)))(X3)
        close(grads, [7, 7, 7])


class TestSubJaxprs:
    """Call primitives whose sub-jaxprs create references."""

    def square(self, x):
        q = px.new_ref(x)
        q[...] = q[...] * x
        return px.freeze(q)

    def halve(self, x):
        q = px.new_ref(x)
        q[...] = q[...] * 0.5
        return px.freeze(q)

    def cases(self):
        f = px.custom_batching.custom_vmap(self.square)
        f.def_vmap(lambda n, batched, x: (self.square(x), batched[0]))
        return {
            "custom_vmap": (f, X3 * X3),
            "composite": (composite(self.square, "my.square"), X3 * X3),
            "linear solve": (
                lambda b: lax.custom_linear_solve(
                    lambda x: x * 2.0, b, lambda m, b: self.halve(b), symmetric=True
                ),
                X3 / 2,
            ),
            "root": (
                lambda b: lax.custom_root(
                    lambda x: self.halve(x) - b, X3, lambda g, x: b * 2.0, lambda g, y: y * 2.0
                ),
                X3 * 2,
            ),
            "platforms": (
                lambda x: lax.platform_dependent(x, cpu=self.square, default=lambda x: x),
                X3 * X3,
            ),
        }

    @pytest.mark.parametrize(
        "name", ["custom_vmap", "composite", "linear solve", "root", "platforms"]
    )
    def test_they_are_compiled(self, name):
        f, expected = self.cases()[name]
        for way in (f, px.jit(f)):
            close(way(X3), expected)
        close(px.vmap(f)(np.stack([X3, X3])), [expected, expected])

    def test_linear_functions_are_transposed(self):
        for f in (self.halve, px.jit(self.halve)):
            close(px.linear_transpose(f, X3)(X3)[0], X3 / 2)


class TestPrimitivesOfOthers:
    def make(self):
        double_p = Primitive("double_ref", multiple_results=True)

        @double_p.rule(abstract)
        def _abstract(ref):
            return [ref.inner_aval]

        @double_p.rule(effects)
        def _effects(ref):
            return frozenset((ReadEffect(0), WriteEffect(0)))

        return double_p

    def test_with_a_rule(self):
        double_p = self.make()

        @double_p.rule(discharge)
        def _discharge(refs, args):
            (x,) = args
            return [x], [lax.add(x, x)]

        q = px.new_ref(X3)
        f = lambda q: double_p.bind(q)[0]
        close(f(q), X3)
        close(px.jit(f)(q), X3 * 2)
        close(q[...], X3 * 4)

        def g(x):
            q = px.new_ref(x)
            f(q)
            return lax.reduce_sum(q[...] * q[...], (0,))

        close(px.grad(g)(X3), X3 * 8)
        close(px.vmap(px.grad(g))(SMALL), SMALL * 8)
        close(px.jit(px.grad(px.jit(g)))(X3), X3 * 8)

    def test_without(self):
        double_p = self.make()
        q = px.new_ref(X3)
        for call in (
            lambda: double_p.bind(q),
            lambda: px.jit(lambda q: double_p.bind(q)[0])(q),
            lambda: px.grad(lambda x: double_p.bind(px.new_ref(x))[0][0])(X3),
            lambda: discharge_jaxpr(px.make_jaxpr(lambda q: double_p.bind(q)[0])(q)),
        ):
            with pytest.raises(MissingRule, match=r"double_ref .* has no discharge rule"):
                call()
        close(q[...], X3)


class TestRunState:
    def body(self, refs):
        refs["a"][0] = refs["b"][1]
        r.addupdate(refs["b"], ..., refs["a"][...])

    def test_values(self):
        out = run_state(self.body)({"a": X3, "b": X3 * 2})
        close(out["a"], [4, 2, 3])
        close(out["b"], [6, 6, 9])
        assert int(run_state(lambda q: r.set(q, ..., q[...] + 1))(np.int32(3))) == 4

    def test_transformed(self):
        square = run_state(lambda q: r.set(q, 0, q[1] * q[2]))
        sum_of = lambda x: lax.reduce_sum(square(x), (0,))
        close(px.grad(sum_of)(X3), [0, 4, 3])
        close(px.jit(px.vmap(square))(np.stack([X3, X3 + 1])), [[6, 2, 3], [12, 3, 4]])
        close(
            px.grad(lambda y: lax.reduce_sum(run_state(lambda q: r.set(q, 0, y))(X3), (0,)))(
                F32(2)
            ),
            1,
        )

    def test_refused(self):
        with pytest.raises(ValueError, match="must modify the references"):
            run_state(lambda q: q[0])(X3)
