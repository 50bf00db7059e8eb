"""References under ``jit``, derivatives, ``vmap`` and custom rules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import primax_core as px
from primax_core import ad, lax, ref as r
from primax_core.test_util import check_grads
from test_support import assert_close

F32 = np.float32
X3 = np.array([1.0, 2.0, 3.0], F32)
SMALL = np.arange(6, dtype=F32).reshape(2, 3)


close = partial(assert_close, rtol=2e-5, atol=1e-6)


def total(x):
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def inside(x):
    """4 * (sin(x1)^2 + (x1 + x2^2)^2 + x2^2), computed with a local reference."""
    q = px.new_ref(x)
    x1, x2 = q[1], q[2]
    q[0] = lax.sin(x1)
    r.addupdate(q, 1, x2 * x2)
    q[...] *= 2.0
    return total(q[...] * q[...])


def pure(x):
    x1, x2 = lax.index_in_dim(x, 1, 0, False), lax.index_in_dim(x, 2, 0, False)
    a, b = lax.sin(x1), x1 + x2 * x2
    return 4.0 * (a * a + b * b + x2 * x2)


BATCH = np.stack([X3, X3[::-1], X3 * 0.5])

TRANSFORMED = {
    "value": lambda f: f(X3),
    "jit": lambda f: px.jit(f)(X3),
    "grad": lambda f: px.grad(f)(X3),
    "jit grad": lambda f: px.jit(px.grad(f))(X3),
    "grad jit": lambda f: px.grad(px.jit(f))(X3),
    "jvp": lambda f: px.jvp(f, (X3,), (BATCH[1],)),
    "linearize": lambda f: px.linearize(f, X3)[1](BATCH[1]),
    "vmap": lambda f: px.vmap(f)(BATCH),
    "vmap jit": lambda f: px.vmap(px.jit(f))(BATCH),
    "vmap grad": lambda f: px.vmap(px.grad(f))(BATCH),
    "grad vmap": lambda f: px.grad(lambda b: total(px.vmap(f)(b)))(BATCH),
    "hessian": lambda f: px.hessian(f)(X3),
    "jacrev of jacfwd": lambda f: px.jacrev(px.jacfwd(px.jit(f)))(X3),
    "checkpoint": lambda f: px.grad(px.checkpoint(f))(X3),
    "jit checkpoint": lambda f: px.jit(px.grad(px.checkpoint(px.jit(f))))(X3),
    "scan": lambda f: px.grad(
        lambda x: lax.scan(lambda c, _: (c + f(x), None), F32(0), length=2)[0]
    )(X3),
    "cond": lambda f: px.grad(lambda x: lax.cond(total(x) > 0, f, total, x))(X3),
    "while": lambda f: px.jvp(twice_by_while(f), (X3,), (X3,)),
    "disable_jit": lambda f: disabled(px.jit(f)),
}


def twice_by_while(f):
    def run(x):
        step = lambda c: (c[0] + 1, c[1] + f(x))
        return lax.while_loop(lambda c: c[0] < 2, step, (0, F32(0)))[1]

    return run


def disabled(f):
    with px.disable_jit():
        return f(X3)


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_function_with_a_local_reference_is_pure(name):
    apply = TRANSFORMED[name]
    px.tree.map(close, apply(inside), apply(pure))


def test_numerical_derivatives():
    with px.enable_x64(True):
        check_grads(inside, (X3.astype(np.float64),), order=2)


class TestJit:
    def test_arguments_change(self):
        q = px.new_ref(SMALL)

        @px.jit
        def f(q, x):
            q[0] = x
            return q[1] + q[0]

        for k in range(3):
            close(f(q, X3 * k), SMALL[1] + X3 * k)
            close(q[0], X3 * k)

    def test_closures_change(self):
        q = px.new_ref(F32(0))
        traces = []

        @px.jit
        def count(x):
            traces.append(1)
            q[...] += x
            return q[...] * 2.0

        assert [float(count(F32(1))) for _ in range(3)] == [2.0, 4.0, 6.0]
        assert float(q[...]) == 3.0 and len(traces) == 1

    def test_trees_and_keywords(self):
        state = {"n": px.new_ref(np.int32(0)), "w": [px.new_ref(X3)]}

        @px.jit
        def step(*, state, by):
            state["n"][...] += 1
            state["w"][0][...] -= by
            return {"out": state["w"][0][0]}

        step(state=state, by=X3)
        out = step(state=state, by=X3)
        assert int(state["n"][...]) == 2 and float(out["out"]) == -1.0
        close(state["w"][0][...], -X3)

    def test_values_read_before_are_unchanged(self):
        q = px.new_ref(np.zeros(1000, F32))
        double = px.jit(lambda q: r.set(q, ..., q[...] + 1.0))
        seen = []
        for _ in range(3):
            double(q)
            seen.append(q[...])
        assert [float(s.max()) for s in map(np.asarray, seen)] == [1.0, 2.0, 3.0]

    def test_results_are_not_the_reference(self):
        q = px.new_ref(np.zeros(1000, F32))
        bump = px.jit(lambda q: (r.set(q, ..., q[...] + 1.0), q[...])[1])
        a, b, same = bump(q), bump(q), px.jit(lambda q: q[...])(q)
        q[...] += 1.0
        q[0] = 7.0
        assert [float(np.asarray(x).max()) for x in (a, b, same)] == [1.0, 2.0, 2.0]

    def test_types_without_values(self):
        s = px.ShapeDtypeStruct((3,), F32, is_ref=True)
        f = px.jit(lambda q: (r.set(q, 0, F32(5)), q[...])[1])
        assert str(px.typeof(s)) == "Ref{float32[3]}"
        assert px.eval_shape(f, s) == px.ShapeDtypeStruct((3,), F32)
        q = px.new_ref(X3)
        close(f.lower(s).compile()(q), [5, 2, 3])
        close(q[...], [5, 2, 3])

    def test_a_call_that_fails(self):
        def stop(x):
            raise RuntimeError("no more")

        def f(q):
            r.addupdate(q, ..., q[...])
            q[0] = px.pure_callback(stop, px.ShapeDtypeStruct((), F32), q[1])

        whole, owned = px.new_ref(X3), px.new_ref(X3)
        owned[0] = 1.0
        for q in (whole, owned):
            with pytest.raises(Exception, match="no more"):
                px.jit(f)(q)
                px.block_until_ready(q)
        # Never a wrong number: the old value if the call failed early, otherwise the error again.
        try:
            close(np.asarray(whole[...]), X3)
        except px.errors.JaxRuntimeError as error:
            assert "no more" in str(error)
        with pytest.raises(Exception, match=r"a call that failed while it was changing|no more"):
            np.asarray(owned[...])

    def test_updates_are_in_place(self):
        q = px.new_ref(np.zeros(1 << 12, F32))
        step = px.jit(lambda q: r.addupdate(q, 0, F32(1)))
        step(q)
        step(q)
        places = {q.unsafe_buffer_pointer() for _ in range(5) if step(q) is None}
        q[1] = 3.0
        places.add(q.unsafe_buffer_pointer())
        assert len(places) == 1 and float(q[0]) == 7.0

    def test_two_references_and_donation(self):
        a, b = px.new_ref(X3), px.new_ref(X3 * 2)

        def exchange(a, b, x):
            old = r.swap(a, ..., b[...])
            b[...] = old
            return x + 1.0

        f = px.jit(exchange, donate_argnums=2)
        x = px.device_put(X3)
        close(f(a, b, x), X3 + 1)
        close(a[...], X3 * 2)
        close(b[...], X3)
        assert x.is_deleted()

    def test_nested(self):
        @px.jit
        def inner(q, x):
            q[...] = q[...] * x
            return q[0]

        @px.jit
        def outer(q, x):
            first = inner(q, x)
            return first + inner(q, x)

        q = px.new_ref(X3)
        assert float(outer(q, F32(2))) == 2.0 + 4.0
        close(q[...], X3 * 4)

    def test_ahead_of_time(self):
        q = px.new_ref(X3)
        f = px.jit(lambda q, x: (r.set(q, 0, x), q[...])[1])
        lowered = f.lower(q, F32(5))
        assert "tf.aliasing_output" in lowered.as_text()
        close(lowered.compile()(q, F32(6)), [6, 2, 3])
        close(q[...], [6, 2, 3])
        assert f.eval_shape(q, F32(1)).shape == (3,)

    def test_inspection_has_no_effect(self):
        q = px.new_ref(X3)
        px.make_jaxpr(lambda x: r.set(q, 0, x))(F32(9))
        px.eval_shape(lambda q: r.set(q, 0, F32(9)), q)
        close(q[...], X3)

    def test_a_failed_trace_has_no_effect(self):
        q = px.new_ref(X3)

        @px.jit
        def f(q):
            q[0] = 9.0
            raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            f(q)
        close(q[...], X3)

    def test_devices(self):
        second = px.devices()[1]
        q = px.new_ref(px.device_put(X3, second))
        px.jit(lambda q: r.addupdate(q, ..., q[...]))(q)
        q[0] += 1.0
        assert q[...].devices() == {second}
        close(q[...], [3, 4, 6])

    def test_compile_time_evaluation(self):
        q = px.new_ref(F32(1))

        @px.jit
        def f(x):
            with px.ensure_compile_time_eval():
                q[...] = q[...] * 2.0
            return x

        f(X3)
        assert float(q[...]) == 2.0


class TestOutside:
    """References that a differentiated or mapped function receives or closes over."""

    @pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])
    def test_gradients_with_plumbing(self, wrap):
        q, count = px.new_ref(X3), px.new_ref(F32(0))

        def f(x, q):
            q[...] = q[...] * 2.0
            count[...] += 1.0
            return total(x * q[...])

        close(wrap(px.grad(wrap(f)))(X3, q), X3 * 2)
        close(px.grad(px.checkpoint(f))(X3, q), X3 * 4)
        _, dot = px.jvp(lambda x: wrap(f)(x, q), (X3,), (X3,))
        close(dot, total(X3 * X3 * 8))
        assert float(count[...]) == 3.0

    def test_values_that_are_not_differentiated_can_be_stored(self):
        seen = px.new_ref(X3 * 0)
        close(
            px.grad(lambda x: (r.set(seen, ..., lax.stop_gradient(x) * 3), total(x))[1])(X3),
            [1] * 3,
        )
        close(seen[...], X3 * 3)

    @pytest.mark.parametrize("write", [r.set, r.swap, r.addupdate])
    @pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])
    def test_differentiated_values_cannot_be_stored(self, write, wrap):
        q = px.new_ref(X3)
        f = wrap(lambda x: (write(q, ..., x), total(x))[1])
        for g in (px.grad(f), lambda x: px.jvp(f, (x,), (x,))):
            with pytest.raises(ValueError, match="a differentiated value on a non-differentiated"):
                g(X3)

    @pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])
    def test_mapped_references(self, wrap):
        q = px.new_ref(SMALL)
        f = wrap(lambda q, i: (r.set(q, i, F32(9)), r.addupdate(q, 0, F32(1)), q[0] + q[i])[2])
        expected = SMALL.copy()
        expected[[0, 1], [0, 1]] = 9
        expected[:, 0] += 1
        out = wrap(px.vmap(f))(q, np.array([0, 1]))
        close(q[...], expected)
        close(out, expected[:, 0] + expected[[0, 1], [0, 1]])
        px.vmap(lambda q: r.set(q, 0, F32(-1)), in_axes=1)(q)
        close(q[0], [-1, -1, -1])

    def test_mapped_reads_of_one_reference(self):
        q = px.new_ref(SMALL)
        i, j = np.array([0, 1]), np.array([2, 0])
        close(px.vmap(lambda i, j: q[i, j])(i, j), SMALL[i, j])
        close(px.vmap(lambda q, i: q[i], in_axes=(None, 0))(q, i), SMALL)
        px.vmap(lambda x: r.set(q, 0, X3))(i)
        close(q[0], X3)

    @pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])
    def test_a_batch_does_not_fit_into_one_reference(self, wrap):
        q = px.new_ref(F32(0))
        for write, what in ((r.set, "a set/swap"), (r.addupdate, "an addupdate")):
            with pytest.raises(
                ValueError, match=f"{what} operation with a vmapped value on an unbat"
            ):
                px.vmap(wrap(lambda x, write=write: write(q, ..., x)))(X3)

    def test_one_result_for_all_examples(self):
        f = px.vmap(lambda x: (lambda q: (r.set(q, ..., x), q[...])[1])(px.new_ref(F32(0))))
        close(f(X3), X3)

    def test_tangent_references(self):
        q, dq = px.new_ref(X3), px.new_ref(X3 * 0 + 1)

        def f(x, q):
            q[0] = q[0] * lax.index_in_dim(x, 0, 0, False)
            q[1] = 5.0
            return total(x * q[...])

        y, dy = px.jvp(f, (X3, q), (X3, dq))
        close(q[...], [1, 5, 3])
        close(dq[...], [2, 0, 1])
        assert float(y) == 1 + 10 + 9 and float(dy) == (1 + 10 + 9) + (2 + 0 + 3)


class TestCotangentReferences:
    @pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])
    def test_gradients_are_added(self, wrap):
        g = px.new_ref(X3 * 0)
        step = wrap(lambda x: px.vjp(pure, x)[1].with_refs(g)(F32(1)))
        assert step(X3) == step(X3) == (ad.GradRef(),)
        close(g[...], 2 * px.grad(pure)(X3))

    def test_trees_and_marks(self):
        f = lambda p, y, z: total(p["a"] * p["b"] * y * z)
        a, b = px.new_ref(X3), px.new_ref(X3 * 0)
        out = px.vjp(f, {"a": X3, "b": X3 * 2}, X3, X3)[1].with_refs(
            {"a": a, "b": b}, ad.GradValue(), ad.DontWant()
        )(F32(1))
        assert out[0] == {"a": ad.GradRef(), "b": ad.GradRef()} and out[2] == ad.DidntWant()
        close(a[...], X3 + 2 * X3**3)
        close(b[...], X3**3)
        close(out[1], 2 * X3**3)

    def test_references_as_arguments(self):
        def f(x, q):
            q[0] = lax.index_in_dim(x, 1, 0, False)
            return total(q[...] * q[...])

        q, g = px.new_ref(X3), px.new_ref(X3 * 0 + 1)
        _, pull = px.vjp(f, X3, q)
        close(q[...], [2, 2, 3])
        ct, mark = pull.with_refs(ad.GradValue(), g)(F32(2))
        # The initial value of g is the cotangent of the final contents.
        close(ct, [0, 9, 0])
        close(g[...], [0, 9, 13])
        assert mark == ad.GradRef()

    def test_pullbacks_are_trees(self):
        g = px.new_ref(X3 * 0)
        pull = px.jit(lambda x: px.vjp(pure, x)[1])(X3)
        pull.with_refs(g)(F32(1))
        close(g[...], px.grad(pure)(X3))

    def test_refused(self):
        _, pull = px.vjp(total, X3)
        with pytest.raises(ValueError, match="unexpected tree structure"):
            pull.with_refs(None)
        with pytest.raises(ValueError, match=r"requires a ref of type Ref\{float32"):
            pull.with_refs(px.new_ref(np.zeros(4, F32)))
        _, pull = px.vjp(lambda q: total(q[...]), px.new_ref(X3))
        with pytest.raises(ValueError, match=r"argument at position q .* no gradient ref was"):
            pull(F32(1))
        with pytest.raises(TypeError, match="grad cannot differentiate with respect to a Ref"):
            px.grad(lambda q: total(q[...]))(px.new_ref(X3))


class TestCustomRules:
    def stash(self):
        f = px.custom_vjp(lambda q, x: x)
        f.defvjp(lambda q, x: (x, q), lambda q, g: (r.set(q, ..., g), (None, g))[1])
        return f

    @pytest.mark.parametrize("outer", [lambda f: f, px.jit], ids=["eager", "jit"])
    @pytest.mark.parametrize("inner", [lambda f: f, px.jit], ids=["eager", "jit"])
    def test_cotangents_are_stashed(self, outer, inner):
        stash, q = self.stash(), px.new_ref(X3 * 0)
        f = inner(lambda x, q: total(lax.cos(stash(q, x * 2.0))))
        close(outer(px.grad(f))(X3, q), -2 * np.sin(2 * X3))
        close(q[...], -np.sin(2 * X3))

    def test_in_a_scan(self):
        stash, q = self.stash(), px.new_ref(X3 * 0)
        f = lambda xs: lax.scan(lambda c, x: (c * total(stash(q, x)), None), F32(1), xs)[0]
        px.grad(f)(np.stack([X3, X3 * 2]))
        close(q[...], [12, 12, 12])  # of the first step, which is last in reverse

    @pytest.mark.parametrize("outer", [lambda f: f, px.jit], ids=["eager", "jit"])
    @pytest.mark.parametrize("inside", ["plain", "scan", "cond", "checkpoint"])
    def test_backward_rules_close_over_references(self, outer, inside):
        q = px.new_ref(X3 * 0)
        stash = px.custom_vjp(lambda x: x)
        stash.defvjp(lambda x: (x, None), lambda _, g: (r.set(q, ..., g), (g,))[1])

        def f(x):
            return total(lax.cos(stash(x)))

        g = {
            "plain": f,
            "scan": lambda x: lax.scan(lambda c, _: (c + f(x), None), F32(0), length=2)[0],
            "cond": lambda x: lax.cond(total(x) > 0, f, total, x),
            "checkpoint": px.checkpoint(f),
        }[inside]
        grads = outer(px.grad(g))(X3)
        close(q[...], -np.sin(X3))
        close(grads, -np.sin(X3) * (2 if inside == "scan" else 1))

    def test_a_rule_cannot_keep_a_reference_of_its_caller(self):
        stash = self.stash()
        f = px.jit(lambda x: total(stash(px.new_ref(X3 * 0), x)))
        with pytest.raises(ValueError, match="cannot leave the function that creates them"):
            px.grad(f)(X3)

    @pytest.mark.parametrize("local", [False, True])
    def test_rules_write(self, local):
        f = px.custom_vjp(lambda q, x: (r.set(q, ..., x), x * 2.0)[1])
        f.defvjp(
            lambda q, x: ((r.set(q, ..., x * 5.0), x * 2.0)[1], None), lambda _, g: (None, g * 3)
        )
        seen = px.new_ref(X3 * 0)

        def g(x):
            q = px.new_ref(X3 * 0) if local else seen
            y = f(q, x)
            return total(y), lax.stop_gradient(q[...])

        close(g(X3)[1], X3)
        grads, held = px.grad(g, has_aux=True)(X3)
        close(grads, [3, 3, 3])
        close(held, 5 * X3)

    def test_forward_rules(self):
        f = px.custom_jvp(lambda q, x: (r.set(q, ..., x), x * 2.0)[1])
        f.defjvp(lambda p, t: (f(*p), t[1] * 7.0))
        q = px.new_ref(X3 * 0)
        close(px.grad(lambda x: total(f(q, x)))(X3), [7, 7, 7])
        close(px.jit(px.grad(px.jit(lambda x: total(f(q, x)))))(X3 * 2), [7, 7, 7])
        close(q[...], X3 * 2)


def test_gradients_of_repeated_operands_beside_unwanted_ones():
    w, x = np.float32(3), np.float32(2)
    dot = px.jit(lambda a, b, c: lax.mul(lax.mul(a, b), c))
    for fun in (
        lambda w, x: lax.mul(lax.mul(w, w), x),
        lambda w, x: lax.mul(w, lax.mul(w, x)),
        lambda w, x: dot(w, w, x),
        lambda w, x: dot(w, x, w),
        lambda w, x: lax.add(lax.mul(w, lax.mul(w, x)), lax.mul(x, w)),
    ):
        pull = px.vjp(fun, w, x)[1]
        expected = pull(np.float32(1))
        out = pull.with_refs(ad.GradValue(), ad.DontWant())(np.float32(1))
        assert float(out[0]) == float(expected[0])
        out = pull.with_refs(ad.DontWant(), ad.GradValue())(np.float32(1))
        assert float(out[1]) == float(expected[1])


@pytest.mark.parametrize("jitted", [False, True])
def test_unwanted_gradients_are_not_computed(jitted):
    x, w = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    dot = px.jit(lax.dot) if jitted else lax.dot
    pull = px.vjp(lambda x, w: lax.sin(dot(x, w)), x, w)[1]
    ct = np.ones((2, 4), np.float32)
    for refs, position in [
        ((ad.GradValue(), ad.DontWant()), 0),
        ((ad.DontWant(), ad.GradValue()), 1),
    ]:
        run = pull.with_refs(*refs)
        out = run(ct)
        np.testing.assert_allclose(out[position], pull(ct)[position])
        assert repr(out[1 - position]) == "DidntWant()"
        text = str(px.make_jaxpr(run)(ct))
        assert text.count("dot_general[") == 1, text
    assert "dot_general" not in str(px.make_jaxpr(pull.with_refs(ad.DontWant(), ad.DontWant()))(ct))


def test_a_custom_vjp_function_receives_a_reference_once():
    q = px.new_ref(np.float32(1))
    f = px.custom_vjp(lambda a, b, x: x)
    f.defvjp(lambda a, b, x: (x, None), lambda _, ct: (None, None, ct))
    with pytest.raises(ValueError, match=r"for custom_vjp .* appeared at both a and b"):
        px.grad(lambda x: f(q, q, x))(1.0)


def test_functions_with_custom_rules_return_no_references() -> None:
    @px.custom_vjp
    def made(x):
        return {"ref": px.new_ref(x)}

    made.defvjp(lambda x: ({"ref": px.new_ref(x)}, None), lambda _, ct: (ct["ref"],))

    @px.custom_vjp
    def passed(ref, x):
        return ref

    passed.defvjp(lambda ref, x: (ref, x), lambda x, ct: (None, ct))

    @px.custom_jvp
    def made_too(x):
        return px.new_ref(x)

    made_too.defjvp(lambda primals, tangents: (made_too(*primals), tangents[0]))
    one = np.float32(1)
    refused = r"custom_vjp function \S*made at .*:\d+ returned .*Ref.* at result\['ref'\]"
    for call in (made, px.jit(made), px.grad(lambda x: made(x)["ref"][...])):
        with pytest.raises(ValueError, match=refused):
            call(one)
    with pytest.raises(ValueError, match=r"custom_vjp function .*passed at"):
        passed(px.new_ref(one), one)
    with pytest.raises(ValueError, match=r"custom_jvp function .*made_too at"):
        px.jit(lambda x: made_too(x)[...])(one)
    assert made_too(one)[...] == 1
