"""``cond`` and ``switch``."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

F32 = np.float32
X3 = np.arange(3, dtype=F32)


def up(x):
    return x + 1.0


def down(x):
    return x - 1.0


class TestCond:
    @pytest.mark.parametrize("pred", [True, 2, 0.5, np.True_, np.int8(1)])
    def test_true_predicates(self, pred):
        assert float(lax.cond(pred, up, down, 1.0)) == 2.0

    @pytest.mark.parametrize("pred", [False, 0, 0.0, np.False_])
    def test_false_predicates(self, pred):
        assert float(lax.cond(pred, up, down, 1.0)) == 0.0

    def test_traced(self):
        f = px.jit(lambda p, x: lax.cond(p, up, down, x))
        assert float(f(True, 1.0)) == 2.0 and float(f(False, 1.0)) == 0.0

    def test_only_one_branch_runs(self):
        f = px.jit(lambda x: lax.cond(x > 0, lambda: 1.0, lambda: lax.while_loop(
            lambda c: True, lambda c: c, 0.0)))  # fmt: skip
        assert float(f(1.0)) == 1.0

    def test_forms_of_operands(self):
        assert float(lax.cond(True, up, down, operand=1.0)) == 2.0
        assert float(lax.cond(True, lambda _: 1.0, lambda _: 2.0, operand=None)) == 1.0
        assert float(lax.cond(False, lambda: 1.0, lambda: 2.0)) == 2.0
        assert float(lax.cond(True, 1.0, up, 5.0, down)) == 2.0
        assert float(lax.cond(False, 1.0, up, 5.0, down)) == 4.0
        assert (
            float(lax.cond(True, lambda a, b: a - b["k"], lambda a, b: a, 3.0, {"k": 1.0})) == 2.0
        )

    def test_trees_of_results(self):
        out = lax.cond(True, lambda: {"a": (X3, None)}, lambda: {"a": (2 * X3, None)})
        np.testing.assert_array_equal(out["a"][0], X3)

    def test_closures(self):
        f = px.jit(lambda p, x, y: lax.cond(p, lambda: lax.sin(x), lambda: y * x))
        assert float(f(False, 2.0, 3.0)) == 6.0
        assert float(px.grad(f, 2)(False, 2.0, 3.0)) == 2.0
        assert float(px.grad(f, 2)(True, 2.0, 3.0)) == 0.0

    def test_weak_and_strong_types_give_strong_types(self):
        assert not lax.cond(True, lambda: 1.0, lambda: F32(2)).weak_type
        assert lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type

    @pytest.mark.parametrize("jac", [px.grad, px.jacfwd, px.jacrev])
    def test_derivatives(self, jac):
        def f(x):
            return lax.cond(x > 1.0, lambda y: y * y, lambda y: lax.sin(y), x)

        assert float(jac(f)(3.0)) == 6.0
        assert float(px.jit(jac(f))(0.5)) == pytest.approx(np.cos(0.5))
        assert float(px.grad(jac(f))(3.0)) == 2.0

    def test_branches_with_different_residuals(self):
        def f(x):
            return lax.cond(
                x > 0, lambda y: lax.exp(lax.sin(y)) * y, lambda y: y * y * y * lax.cos(y), x
            )

        g = px.jit(px.grad(f))
        a = 0.7
        assert float(g(a)) == pytest.approx(np.exp(np.sin(a)) * (1 + a * np.cos(a)), rel=1e-5)
        b = -0.7
        assert float(g(b)) == pytest.approx(3 * b * b * np.cos(b) - b**3 * np.sin(b), rel=1e-5)

    def test_dead_results_are_dropped(self):
        def f(x):
            return lax.cond(x > 0, lambda: (x, lax.sin(x)), lambda: (x * 2.0, lax.cos(x)))[0]

        text = px.jit(f).lower(1.0).compile().as_text()
        assert "sine" not in text

    def test_disable_jit_checks_no_types(self):
        with px.disable_jit():
            assert lax.cond(True, lambda: 1.0, lambda: "a") == 1.0

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ((None, up, down, 1.0), "cond predicate is None"),
            ((X3, up, down, 1.0), r"Pred must be a scalar, got .* of shape \(3,\)"),
            (("a", up, down, 1.0), "Pred must be a scalar, got a of type <class 'str'>"),
            ((True, 1, 2), "true_fun and false_fun arguments should be callable"),
        ],
    )
    def test_refused_arguments(self, args, message):
        with pytest.raises(TypeError, match=message):
            lax.cond(*args)

    def test_operands_by_position_and_keyword_are_refused(self):
        with pytest.raises(TypeError, match="'operand' keyword is passed"):
            lax.cond(True, up, down, 1.0, operand=2.0)


class TestMismatchedBranches:
    def test_errors_show_both_types(self):
        with pytest.raises(TypeError) as e:
            lax.cond(True, lambda: {"c": X3, "d": 1.0}, lambda: {"c": X3[:2], "d": 1})
        text = str(e.value)
        assert "cond branches must have equal output types but they differ." in text
        assert "true_fun is <lambda> at " in text and "false_fun is <lambda> at " in text
        assert (
            "the output of true_fun at path ['c'] has type float32[3] but the corresponding output "
            "of false_fun has type float32[2], so the shapes do not match"
        ) in text
        assert (
            "at path ['d'] has type float32[]" in text and "has type int32[], so the dtypes" in text
        )
        assert "Revise true_fun and/or false_fun" in text

    def test_errors_show_both_structures(self):
        with pytest.raises(TypeError) as e:
            lax.cond(True, lambda: (1.0, {"a": 2.0}), lambda: (1.0, [2.0]))
        text = str(e.value)
        assert "cond branch outputs must have the same pytree structure" in text
        assert (
            "The output of true_fun at path [1] is a <class 'dict'> with 1 child but the output of "
            "false_fun at path [1] is a <class 'list'> with 1 child, so their Python types differ."
        ) in text

    @pytest.mark.parametrize(
        ("a", "b"), [(1, F32(2)), (1.0, 1j), (X3, X3.astype(np.int32)), (X3, F32(1))]
    )
    def test_nothing_is_promoted(self, a, b):
        with pytest.raises(TypeError, match="must have equal output types"):
            lax.cond(True, lambda: a, lambda: b)

    def test_results_that_are_not_arrays(self):
        with pytest.raises(
            TypeError, match="traced for cond returned a value of type <class 'str'>"
        ):
            lax.cond(True, lambda: "a", lambda: "b")

    def test_of_switch(self):
        with pytest.raises(TypeError, match=r"(?s)switch branches must .*branch 0 .*branch 1"):
            lax.switch(1, [lambda: X3, lambda: F32(1)])


class TestSwitch:
    BRANCHES = [lambda x: x, lambda x: x * 10.0, lambda x: x * 100.0]

    @pytest.mark.parametrize(("i", "expected"), [(-3, 2), (0, 2), (1, 20), (2, 200), (7, 200)])
    def test_the_index_is_clamped(self, i, expected):
        assert float(lax.switch(i, self.BRANCHES, 2.0)) == expected
        assert float(px.jit(lambda i: lax.switch(i, self.BRANCHES, 2.0))(i)) == expected
        with px.disable_jit():
            assert float(lax.switch(i, self.BRANCHES, 2.0)) == expected

    def test_one_branch_is_called(self):
        assert lax.switch(5, [lambda x: "called"], 1.0) == "called"

    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32])
    def test_integer_types(self, dtype):
        assert float(lax.switch(dtype(1), self.BRANCHES, 2.0)) == 20.0

    def test_derivatives(self):
        f = px.grad(lambda x, i: lax.switch(i, [lax.sin, lambda y: y * y, lambda y: 3.0 * y], x))
        assert [float(f(2.0, i)) for i in (1, 2)] == [4.0, 3.0]
        assert float(f(2.0, 0)) == pytest.approx(np.cos(2.0))

    @pytest.mark.parametrize(
        ("index", "branches", "error", "message"),
        [
            (1.0, BRANCHES, TypeError, "Index type must be an integer, got 1.0 as float32"),
            (True, BRANCHES, TypeError, "Index type must be an integer, got True as bool"),
            (np.array([1]), BRANCHES, TypeError, "Branch index must be scalar"),
            (1, [], ValueError, "Empty branch sequence"),
            (1, [3], TypeError, "sequence of callables"),
        ],
    )
    def test_refusals(self, index, branches, error, message):
        with pytest.raises(error, match=message):
            lax.switch(index, branches, 1.0)


class TestConditionsInRules:
    """A mapped condition on a tangent is transposed, although it stops gradients."""

    @staticmethod
    def function():
        @px.custom_jvp
        def f(x):
            return lax.sin(x)

        @f.defjvp
        def f_jvp(primals, tangents):
            def one(p, t):
                return lax.cond(p > 2.0, lambda t: t / lax.sqrt(p - 2.0), lambda t: 3.0 * t, t)

            return f(*primals), px.vmap(one)(primals[0], tangents[0])

        return f

    @pytest.mark.parametrize("wrap", [lambda f: f, px.jit, px.checkpoint])
    def test_reverse_mode(self, wrap):
        f = wrap(self.function())
        x = np.array([1.0, 2.0, 6.0], F32)
        expected = np.diag(np.array([3.0, 3.0, 0.5], F32))
        np.testing.assert_allclose(px.jacrev(f)(x), expected)
        np.testing.assert_allclose(px.jacfwd(f)(x), expected)
        np.testing.assert_allclose(px.linearize(f, x)[1](x), expected @ x)
        gradient = px.grad(lambda x: lax.reduce_sum(f(x), (0,)))
        np.testing.assert_allclose(px.vmap(gradient)(np.stack([x, x])), [np.diag(expected)] * 2)

    def test_an_explicit_stop_of_a_tangent_is_refused(self):
        @px.custom_jvp
        def f(x):
            return x

        f.defjvp(lambda primals, tangents: (primals[0], lax.stop_gradient(tangents[0])))
        with pytest.raises(TypeError, match=r"stop_gradient, on line .* is not linear"):
            px.grad(f)(1.0)


class TestResultsThatAreOperands:
    """A result that is the same operand in each branch is not mapped by a mapped condition."""

    @staticmethod
    def function(i, x, y):
        def add(x, y):
            return lax.add(x, F32(1)), y, x

        return lax.switch(i, [add, lambda x, y: (x, y, x), lambda x, y: (y, y, x)], x, y)

    def test_out_axes(self):
        i, x = np.arange(3, dtype=np.int32), np.arange(3, dtype=F32)
        axes = {"in_axes": (0, 0, None), "out_axes": (0, None, 0)}
        for wrap in (lambda f: f, px.jit):
            outs = wrap(px.vmap(self.function, **axes))(i, x, F32(7))
            assert [np.asarray(o).tolist() for o in outs] == [[1, 1, 7], 7, [0, 1, 2]]

    def test_another_axis(self):
        i, x = np.arange(3, dtype=np.int32), np.ones((2, 3), F32)
        outs = px.vmap(self.function, (0, 1, None), (0, None, 1))(i, x, np.zeros(2, F32))
        assert [o.shape for o in outs] == [(3, 2), (2,), (2, 3)]

    def test_gradient(self):
        def total(x, i):
            first, _, third = self.function(i, x, F32(7))
            return lax.add(first, third)

        slopes = px.vmap(px.grad(total))(np.ones(3, F32), np.arange(3, dtype=np.int32))
        assert slopes.tolist() == [2, 2, 1]

    def test_different_operands_are_mapped(self):
        def swap(i, x, y):
            return lax.switch(i, [lambda x, y: (x, y), lambda x, y: (y, x)], x, y)

        a, b = px.vmap(swap, (0, None, None))(np.arange(2, dtype=np.int32), F32(1), F32(2))
        assert (a.tolist(), b.tolist()) == ([1, 2], [2, 1])
