"""``scan``, ``while_loop``, ``fori_loop`` and ``map``."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

F32 = np.float32
X3 = np.arange(3, dtype=F32)
X7 = np.arange(7, dtype=F32)


def running(c, x):
    return c + x, c * 2.0


def by_hand(c, xs, reverse=False):
    ys = []
    for x in xs[::-1] if reverse else xs:
        ys.append(c * 2.0)
        c = c + x
    return c, np.array(ys[::-1] if reverse else ys, F32)


class TestScan:
    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize("unroll", [1, 2, 3, 7, 9, 0, True, False])
    def test_values(self, reverse, unroll):
        c, ys = lax.scan(running, F32(1), X7, reverse=reverse, unroll=unroll)
        expected = by_hand(F32(1), X7, reverse)
        assert float(c) == expected[0]
        np.testing.assert_array_equal(ys, expected[1])

    def test_trees(self):
        def f(c, x):
            return {"n": c["n"] + 1, "s": c["s"] + x["a"]}, (x["b"][0], None)

        c, (ys, none) = lax.scan(f, {"n": 0, "s": F32(0)}, {"a": X3, "b": [X3 * 2]})
        assert int(c["n"]) == 3 and float(c["s"]) == 3.0 and none is None
        np.testing.assert_array_equal(ys, X3 * 2)

    def test_length_zero(self):
        c, ys = lax.scan(running, F32(5), X3[:0])
        assert float(c) == 5.0 and ys.shape == (0,) and ys.dtype == F32
        c, ys = px.jit(lambda: lax.scan(running, F32(5), X3[:0]))()
        assert ys.shape == (0,)

    @pytest.mark.parametrize("length", [3, np.int64(3), np.array(3), 3.9])
    def test_length_without_xs(self, length):
        c, ys = lax.scan(lambda c, x: (c + 1, c), 0, None, length=length)
        assert int(c) == 3 and ys.tolist() == [0, 1, 2]

    def test_results_that_are_constants(self):
        _, (a, b) = lax.scan(lambda c, x: (c, (1, 2.0)), 0.0, X3)
        assert a.tolist() == [1, 1, 1] and b.tolist() == [2.0, 2.0, 2.0]

    def test_a_body_may_return_a_list(self):
        c, _ = lax.scan(lambda c, x: [c + x, x], F32(0), X3)
        assert float(c) == 3.0

    def test_closures_and_jit(self):
        f = px.jit(lambda k: lax.scan(lambda c, x: (c + k * x, None), 0.0, X3)[0])
        assert float(f(2.0)) == 6.0

    def test_disable_jit(self):
        seen = []

        def f(c, x):
            seen.append(type(x).__name__)
            return c + x, c

        with px.disable_jit():
            c, ys = lax.scan(f, F32(0), X3, reverse=True)
        assert len(seen) == 3 and float(c) == 3.0 and ys.tolist() == [3.0, 2.0, 0.0]

    def test_a_long_loop_is_one_executable(self):
        text = px.jit(lambda x: lax.scan(running, x, np.ones(1000, F32))).lower(F32(0)).as_text()
        assert text.count("stablehlo.while") == 1 and len(text) < 10_000


class TestWeakCarries:
    def test_take_the_dtype_of_the_body(self):
        c, ys = lax.scan(lambda c, x: (c + x, c), 0, X3)
        assert c.dtype == F32 and not c.weak_type and ys.dtype == F32
        half = lax.convert_element_type(X3, "bfloat16")
        assert lax.scan(lambda c, x: (c + x, None), 0.0, half)[0].dtype.name == "bfloat16"
        assert lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, 0).dtype == F32
        assert lax.fori_loop(0, 2, lambda i, c: c + 1.5, 0).dtype == F32

    def test_of_the_same_dtype_stay_weak_inside(self):
        _, ys = lax.scan(lambda c, x: (c + x, c * 2), 0.0, X3)
        assert ys.weak_type

    def test_the_body_determines_the_result_type(self):
        assert lax.scan(lambda c, x: (0.0, None), F32(1), X3)[0].weak_type
        assert not lax.scan(lambda c, x: (c + x, None), 0.0, X3)[0].weak_type

    def test_strong_carries_are_never_promoted(self):
        with pytest.raises(TypeError, match="must have equal types"):
            lax.scan(lambda c, x: (c + 1.5, None), np.int32(0), X3)
        with pytest.raises(TypeError, match="must have equal types"):
            lax.scan(lambda c, x: (0, None), F32(0), X3)


class TestScanDerivatives:
    @staticmethod
    def f(w, xs):
        c, ys = lax.scan(lambda c, x: (lax.sin(c * w) + x, c * x), F32(0.5), xs)
        return c + lax.reduce_sum(ys, (0,))

    @staticmethod
    def unrolled(w, xs):
        c, total = F32(0.5), 0.0
        for x in [lax.index_in_dim(xs, i, 0, keepdims=False) for i in range(3)]:
            c, total = lax.sin(c * w) + x, total + c * x
        return c + total

    @pytest.mark.parametrize("jac", [px.jacfwd, px.jacrev])
    @pytest.mark.parametrize("wrap", [lambda f: f, px.jit])
    def test_first_order(self, jac, wrap):
        actual = wrap(jac(self.f, (0, 1)))(F32(0.7), X3)
        expected = jac(self.unrolled, (0, 1))(F32(0.7), X3)
        for a, b in zip(actual, expected):
            np.testing.assert_allclose(a, b, rtol=1e-5)

    def test_second_order(self):
        actual = px.hessian(self.f)(F32(0.7), X3)
        assert float(actual) == pytest.approx(
            float(px.hessian(self.unrolled)(F32(0.7), X3)), rel=1e-4
        )

    @pytest.mark.parametrize("options", [{"reverse": True}, {"unroll": 2}, {"unroll": True}])
    def test_with_options(self, options):
        def f(w, **options):
            xs = X3 if not options.get("reverse") else X3[::-1].copy()
            c, ys = lax.scan(lambda c, x: (c * w + x, c), F32(1), xs, **options)
            return c * lax.reduce_sum(ys, (0,))

        assert float(px.grad(lambda w: f(w, **options))(F32(2))) == float(px.grad(f)(F32(2)))

    def test_length_zero(self):
        assert float(px.grad(lambda x: lax.scan(running, x, X3[:0])[0])(F32(2))) == 1.0

    def test_integer_carries(self):
        def f(x):
            return lax.scan(lambda c, _: ((c[0] + 1, c[1] * x), None), (0, F32(1)), None, length=3)[
                0
            ][1]

        assert float(px.grad(f)(F32(2))) == 12.0

    def test_loop_invariant_residuals_are_saved_once(self):
        w = np.ones((3, 3), F32)

        def f(w, x):
            return lax.reduce_sum(
                lax.scan(lambda c, _: (lax.tanh(lax.dot(w, c)), None), x, None, length=5)[0], (0,)
            )

        text = str(px.make_jaxpr(px.grad(f))(w, X3))
        assert "f32[5,3]" in text and "f32[5,3,3]" not in text


class TestScanRefusals:
    @pytest.mark.parametrize(
        ("f", "init", "xs", "options", "error", "message"),
        [
            (3, 0.0, X3, {}, TypeError, "f argument should be a callable"),
            (
                running,
                0.0,
                None,
                {},
                ValueError,
                "no values to scan over and `length` not provided",
            ),
            (running, 0.0, 1.0, {}, ValueError, "no leading axis to scan over"),
            (running, 0.0, (X3, X7), {}, ValueError, "different leading axis sizes: 3, 7"),
            (running, 0.0, X3, {"length": 2}, ValueError, "`length` argument of 2 which disagrees"),
            (running, 0.0, None, {"length": -1}, ValueError, "negative `length`: -1"),
            (
                running,
                0.0,
                X3,
                {"unroll": -1},
                ValueError,
                "`unroll` must be a `bool` or a non-neg",
            ),
            (lambda c, x: c, 0.0, X3, {}, TypeError, "scan body output must be a pair"),
            (lambda c, x: (c, x, x), 0.0, X3, {}, TypeError, "scan body output must be a pair"),
            (
                lambda c, x: (c, "s"),
                0.0,
                X3,
                {},
                TypeError,
                "returned a value of type <class 'str'>",
            ),
            (running, "s", X3, {}, TypeError, "not a valid Primax type"),
        ],
    )
    def test_arguments(self, f, init, xs, options, error, message):
        with pytest.raises(error, match=message):
            lax.scan(f, init, xs, **options)

    def test_a_traced_length(self):
        with pytest.raises(px.errors.ConcretizationTypeError, match="expects a concrete `int`"):
            px.jit(lambda n: lax.scan(running, 0.0, None, length=n))(3)

    def test_errors_show_both_carry_types(self):
        def body(state, x):
            return {"a": state["a"], "b": lax.convert_element_type(state["b"], np.int32)}, None

        with pytest.raises(TypeError) as e:
            lax.scan(body, {"a": F32(1), "b": F32(2)}, X3)
        assert (
            "scan body function carry input and carry output must have equal types, but they "
            "differ:\n\nThe input carry component state['b'] has type float32[] but the "
            "corresponding output carry component has type int32[], so the dtypes do not match."
            "\n\nRevise the function so that all output types match"
        ) in str(e.value)

    def test_several_mismatches_are_a_list(self):
        with pytest.raises(TypeError) as e:
            lax.scan(lambda c, x: ((X3, 1.5), None), (F32(1), np.int32(2)), X3)
        assert "  * the input carry component c[0] has type float32[] but" in str(e.value)
        assert "  * the input carry component c[1] has type int32[] but" in str(e.value)

    @pytest.mark.parametrize(
        ("init", "out", "message"),
        [
            ((1.0, 2.0), [1.0, 2.0], "carry c is a <class 'tuple'> .* is a <class 'list'>"),
            ({"a": 1.0}, {"a": 1.0, "b": 2.0}, "keys of only one of them: 'b'"),
            ((1.0, (2.0,)), (1.0, 2.0), r"component c\[1\] is a <class 'tuple'> .* a pytree leaf"),
            (1.0, None, "carry c is a pytree leaf .* output is None"),
        ],
    )
    def test_errors_show_both_carry_structures(self, init, out, message):
        with pytest.raises(TypeError, match="(?s)must have the same pytree structure.*" + message):
            lax.scan(lambda c, x: (out, None), init, X3)

    def test_tracers_in_bodies_name_their_argument(self):
        with pytest.raises(px.errors.TracerBoolConversionError, match="argument carry"):
            lax.scan(lambda carry, x: (carry if carry > 0 else x, None), F32(0), X3)


class TestWhile:
    def test_values(self):
        assert int(lax.while_loop(lambda c: c < 10, lambda c: c * 2, 1)) == 16
        out = lax.while_loop(lambda c: c["n"] < 3, lambda c: {"n": c["n"] + 1, "x": c["x"] * 2.0},
                             {"n": 0, "x": X3})  # fmt: skip
        np.testing.assert_array_equal(out["x"], X3 * 8)

    def test_no_iterations(self):
        assert float(lax.while_loop(lambda c: False, lambda c: c + 1.0, 5.0)) == 5.0

    def test_closures(self):
        f = px.jit(lambda limit, step: lax.while_loop(lambda c: c < limit, lambda c: c + step, 0.0))
        assert float(f(5.0, 2.0)) == 6.0

    def test_forward_mode(self):
        def f(x):
            return lax.while_loop(lambda c: c < 100.0, lambda c: c * x, x)

        y, dy = px.jvp(f, (F32(3),), (F32(1),))
        assert float(y) == 243.0 and float(dy) == pytest.approx(5 * 81.0)

    def test_reverse_mode(self):
        f = px.grad(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x))
        with pytest.raises(
            ValueError, match=r"Reverse-mode differentiation does not work for lax.while"
        ):
            f(1.0)

    def test_reverse_mode_past_a_loop_of_constants(self):
        def f(x):
            n = lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, lax.stop_gradient(x))
            return n * x

        assert float(px.grad(f)(1.0)) == 16.0

    def test_disable_jit(self):
        with px.disable_jit():
            out = lax.while_loop(lambda c: c < 10, lambda c: c * 2, 1)
        assert int(out) == 16 and isinstance(out, px.Array)

    @pytest.mark.parametrize(
        ("cond", "body", "init", "message"),
        [
            (3, lambda c: c, 1.0, "body_fun and cond_fun arguments should be callable"),
            (lambda c: c, lambda c: c, 1, r"must return a boolean scalar, but got .*int32\[\]"),
            (
                lambda c: c < 3,
                lambda c: c,
                X3,
                r"must return a boolean scalar, but got .*bool\[3\]",
            ),
            (
                lambda c: (c < 3,),
                lambda c: c,
                1.0,
                r"must return a boolean scalar.*PyTreeDef\(\(\*,\)\)",
            ),
            (lambda c: c < 3, lambda c: (c, c), 1.0, "while_loop body .* same pytree structure"),
            (lambda c: c < 3, lambda c: c + 1.5, np.int32(1), "while_loop body .* equal types"),
            (lambda c: True, lambda c: X3, X7, r"c has type float32\[7\] .* float32\[3\]"),
        ],
    )
    def test_refusals(self, cond, body, init, message):
        with pytest.raises(TypeError, match="(?s)" + message):
            lax.while_loop(cond, body, init)


class TestFori:
    @pytest.mark.parametrize(
        "bounds",
        [(0, 3), (np.int8(0), np.int8(3)), (np.array(0), 3), (0, px.device_put(3)), (0.0, 3.0)],
        ids=repr,
    )
    def test_static_bounds(self, bounds):
        assert float(lax.fori_loop(*bounds, lambda i, c: c * 2.0, 1.0)) == 8.0

    def test_the_index(self):
        def body(i, c):
            assert i.dtype == np.int32 and i.weak_type
            return c + i

        assert int(lax.fori_loop(2, 5, body, 0)) == 9

    def test_traced_bounds(self):
        f = px.jit(lambda lo, hi: lax.fori_loop(lo, hi, lambda i, c: c + i, 0))
        assert int(f(2, 5)) == 9 and int(f(5, 2)) == 0
        assert int(f(np.int8(2), 5)) == 9

    def test_empty_ranges(self):
        assert float(lax.fori_loop(3, 0, lambda i, c: c + 1.0, 7.0)) == 7.0

    def test_reverse_mode_with_static_bounds(self):
        assert float(px.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, 1.0))(2.0)) == 12.0

    def test_reverse_mode_with_traced_bounds(self):
        f = px.jit(px.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, 1.0)))
        with pytest.raises(ValueError, match="fori_loop with static start/stop"):
            f(2.0, 3)

    @pytest.mark.parametrize("unroll", [1, 2, True])
    def test_unrolled(self, unroll):
        assert float(lax.fori_loop(0, 5, lambda i, c: c * 2.0, 1.0, unroll=unroll)) == 32.0

    def test_disable_jit_gives_python_integers(self):
        seen = []
        with px.disable_jit():
            lax.fori_loop(0, 2, lambda i, c: (seen.append(i), c)[1], 0.0)
        assert seen == [0, 1]

    @pytest.mark.parametrize(
        ("lower", "upper", "init", "body", "error", "message"),
        [
            (
                np.int8(0),
                np.int16(3),
                0.0,
                running,
                TypeError,
                "must have equal types, got int8 and",
            ),
            (0, 3.0, 0.0, running, TypeError, "must have equal types, got int32 and float32"),
            (0, X3, 0.0, running, TypeError, r"upper bound of fori_loop must be a scalar"),
            (0, 3, 0.0, 4, TypeError, "body_fun argument should be callable"),
            (
                0,
                3,
                np.int32(0),
                lambda i, c: c + 1.5,
                TypeError,
                r"loop_carry\[1\] has type int32\[\]",
            ),
            (0, 3, 0.0, lambda i, c: (c, c), TypeError, r"loop_carry\[1\] is a pytree leaf"),
        ],
    )
    def test_refusals(self, lower, upper, init, body, error, message):
        with pytest.raises(error, match=message):
            lax.fori_loop(lower, upper, body, init)

    def test_refusals_with_traced_bounds(self):
        with pytest.raises(TypeError, match=r"loop_carry\[2\] has type int32"):
            px.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + 1.5, np.int32(0)))(3)
        with pytest.raises(ValueError, match="9,223,372,036,854,775,808 copies of the body"):
            lax.scan(lambda c, _: (c, None), 0.0, None, length=2**63, unroll=True)
        with pytest.raises(ValueError, match="Can only use `unroll`"):
            px.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0.0, unroll=2))(3)


class TestMap:
    @pytest.mark.parametrize("batch_size", [None, 0, 1, 3, 7, 20])
    def test_batches(self, batch_size):
        out = lax.map(lambda x: {"y": x * 2.0, "c": 1}, X7, batch_size=batch_size)
        np.testing.assert_array_equal(out["y"], X7 * 2)
        assert out["c"].shape == (7,)

    def test_batches_are_mapped_inside(self):
        text = str(px.make_jaxpr(lambda x: lax.map(lax.sin, x, batch_size=3))(X7))
        assert "scan[" in text and "f32[3] = sin" in text and "f32[1] = sin" in text

    def test_trees_and_derivatives(self):
        def f(x):
            return lax.reduce_sum(lax.map(lambda d: d["a"] * d["b"], {"a": x, "b": x}), (0,))

        np.testing.assert_allclose(px.grad(f)(X3), 2 * X3)

    def test_empty(self):
        assert lax.map(lambda x: x * 2.0, X3[:0]).shape == (0,)
        assert lax.map(lambda x: x * 2.0, X3[:0], batch_size=2).shape == (0,)

    def test_without_a_leading_axis(self):
        with pytest.raises(ValueError, match="no leading axis"):
            lax.map(lambda x: x, 1.0)


def test_nested_batches_of_loops_that_end_at_different_steps():
    def doubled(x):
        return lax.while_loop(lambda c: c < 10, lambda c: c * 2, x)

    def counted(x):
        """The carry has parts of other ranks."""
        init = x, np.zeros(2, np.float32)
        return lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] * 2, c[1] + c[0]), init)[1]

    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    expected = np.array([[16, 16, 12], [16, 10, 12]], np.float32)
    twice = px.vmap(px.vmap(doubled))
    assert np.array_equal(twice(x), expected)
    assert np.array_equal(px.jit(px.vmap(twice))(x[None]), expected[None])
    assert np.array_equal(px.jvp(twice, (x,), (np.ones_like(x),))[1], expected / x)
    sums = expected - x
    assert np.array_equal(px.vmap(px.vmap(counted))(x), np.stack([sums, sums], -1))


@pytest.mark.parametrize("stop", [3, np.int32(3)], ids=["static", "dynamic"])
def test_eager_calls_trace_a_body_once(stop):
    traced = []

    def body(i, x):
        traced.append(i)
        return lax.add(x, 2.0)

    bound = lax.convert_element_type(stop, "int32") if isinstance(stop, np.int32) else stop
    for _ in range(3):
        assert float(lax.fori_loop(0, bound, body, 1.0)) == 7.0
    assert len(traced) == 1
    assert float(lax.fori_loop(1, bound, body, 1.0)) == 5.0
    assert len(traced) == 1
    assert lax.fori_loop(0, bound, body, np.ones(2, np.float32)).shape == (2,)
    assert len(traced) == 2


def test_a_body_that_was_traced_is_freed():
    class Body:
        def __call__(self, i, x):
            return lax.add(x, 1.0)

    body = Body()
    assert float(lax.fori_loop(0, 2, body, 1.0)) == 3.0
    released = weakref.ref(body)
    del body
    px.clear_caches()
    gc.collect()
    assert released() is None
