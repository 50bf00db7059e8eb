"""``vjp``, ``jvp``, ``linearize``, ``linear_transpose`` and ``fwd_and_bwd``."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, tree_util
from test_support import assert_close, numerical_gradient

F32 = np.float32
X = np.array([0.3, -1.2, 2.0], F32)


def zero0(*shape):
    return np.zeros(shape, px.float0)


class TestVjp:
    def test_values(self):
        y, pull = px.vjp(lambda x, y: (x * y, lax.sin(x)), 2.0, 3.0)
        assert [float(v) for v in y] == [6.0, pytest.approx(np.sin(2.0))]
        dx, dy = pull((1.0, 0.0))
        assert (float(dx), float(dy)) == (3.0, 2.0)

    def test_may_be_called_repeatedly(self):
        _, pull = px.vjp(lambda x: x * x, X)
        for scale in (1.0, 2.0, 1.0):
            (ct,) = pull(np.full(3, scale, F32))
            np.testing.assert_allclose(ct, 2 * X * scale, rtol=1e-6)

    def test_is_linear(self):
        _, pull = px.vjp(lax.tanh, X)
        a, b = np.ones(3, F32), np.arange(3, dtype=F32)
        assert_close(pull(a + b)[0], np.asarray(pull(a)[0]) + np.asarray(pull(b)[0]), rtol=1e-6)

    def test_is_a_tree_that_leaves_a_jitted_function(self):
        @px.jit
        def forward(x):
            return px.vjp(lambda x: lax.sin(x) * x, x)

        y, pull = forward(X)
        assert_close(y, np.sin(X) * X, rtol=1e-6)
        expected = np.cos(X) * X + np.sin(X)
        assert_close(pull(np.ones(3, F32))[0], expected, rtol=1e-6)
        assert_close(px.jit(lambda f, ct: f(ct))(pull, np.ones(3, F32))[0], expected, rtol=1e-6)
        assert tree_util.tree_structure(pull) == tree_util.tree_structure(forward(X)[1])

    def test_a_mapped_tree(self):
        _, pulls = px.vmap(lambda x: px.vjp(lax.sin, x))(X)
        assert_close(px.vmap(lambda f: f(1.0)[0])(pulls), np.cos(X), rtol=1e-6)

    def test_attributes(self):
        _, pull = px.vjp(lambda p: p["a"] * 2.0, {"a": 1.0})
        assert str(pull.out_tree) == "PyTreeDef(*)"
        assert str(pull.in_tree) == "PyTreeDef(({'a': *},))"
        assert "mul" in str(pull.jaxpr)
        assert repr(pull).startswith("VJP(")
        assert isinstance(pull.opaque_residuals, list)

    def test_integers(self):
        _, pull = px.vjp(lambda x, n: (x * n, n + 1), 2.0, 3)
        dx, dn = pull((1.0, zero0()))
        assert float(dx) == 3.0 and dn.dtype == px.float0
        assert float(pull((1.0, 7))[0]) == 3.0  # an integer cotangent is ignored

    def test_aux(self):
        y, pull, aux = px.vjp(lambda x: (x * 2.0, {"x": x}), 3.0, has_aux=True)
        assert (float(y), float(pull(1.0)[0]), float(aux["x"])) == (6.0, 2.0, 3.0)

    def test_complex_is_the_transpose_without_conjugation(self):
        _, pull = px.vjp(lambda z: z * (2 + 3j), 1 + 1j)
        assert complex(pull(1j)[0]) == -3 + 2j
        _, pull = px.vjp(lax.conj, 1 + 1j)
        assert complex(pull(1j)[0]) == -1j

    def test_one_result_twice(self):
        _, pull = px.vjp(lambda x: (x, x), 2.0)
        assert float(pull((1.0, 10.0))[0]) == 11.0

    @pytest.mark.parametrize(
        ("ct", "error", "message"),
        [
            ((1.0, 2.0), ValueError, "unexpected tree structure"),
            (F32(1), ValueError, r"got float32\[\], but expected float32\[3\]"),
            (np.ones(3, np.float16), ValueError, r"got float16\[3\], but expected float32\[3\]"),
            (np.ones(3, np.int32), ValueError, r"got int32\[3\], but expected float32\[3\]"),
            ("a", TypeError, "not a valid Primax type"),
        ],
    )
    def test_refuses(self, ct, error, message):
        _, pull = px.vjp(lax.sin, X)
        with pytest.raises(error, match=message):
            pull(ct)

    def test_refuses_two_cotangents(self):
        _, pull = px.vjp(lambda x: (x, x), 1.0)
        with pytest.raises(TypeError, match="takes one argument"):
            pull(1.0, 1.0)


class TestJvp:
    def test_values(self):
        y, dy = px.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
        assert (float(y), float(dy)) == (6.0, 23.0)

    def test_against_differences(self):
        for f in (lax.sin, lambda x: lax.exp(x) / (1.0 + x * x), px.jit(lax.tanh)):
            assert_close(px.jvp(f, (F32(0.6),), (F32(1),))[1], numerical_gradient(f, 0.6))

    def test_lists_and_trees(self):
        y, dy = px.jvp(lambda p: {"o": p["a"] * p["a"]}, [{"a": 3.0}], [{"a": 1.0}])
        assert float(y["o"]) == 9.0 and float(dy["o"]) == 6.0

    def test_integers(self):
        y, dy = px.jvp(lambda n: n * 2, (3,), (zero0(),))
        assert int(y) == 6 and dy.dtype == px.float0
        _, dy = px.jvp(lambda x: (x, lax.convert_element_type(x, np.int32)), (2.5,), (1.0,))
        assert float(dy[0]) == 1.0 and dy[1].dtype == px.float0

    def test_aux(self):
        y, dy, aux = px.jvp(lambda x: (x * x, x), (2.0,), (1.0,), has_aux=True)
        assert (float(y), float(dy), float(aux)) == (4.0, 4.0, 2.0)

    def test_unaffected_results_have_zero_tangents(self):
        _, dy = px.jvp(lambda x: (x, 3.0), (2.0,), (1.0,))
        assert float(dy[1]) == 0.0

    def test_through_a_dynamic_loop(self):
        def f(x):
            return lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x)

        y, dy = px.jvp(f, (1.0,), (1.0,))
        assert (float(y), float(dy)) == (16.0, 16.0)

    @pytest.mark.parametrize(
        ("primals", "tangents", "error", "message"),
        [
            (2.0, 1.0, TypeError, "must be tuples or lists; found float and float"),
            ((2.0, 3.0), (1.0,), TypeError, "must have the same tree structure"),
            (
                (2.0,),
                (np.float16(1),),
                TypeError,
                "expected tangent dtype float32, but got .*float16",
            ),
            ((2,), (1,), TypeError, "tangent dtype must be float0"),
            ((X,), (1.0,), ValueError, "different primal and tangent shapes"),
            (("a",), (1.0,), TypeError, "not a valid Primax type"),
        ],
    )
    def test_refuses(self, primals, tangents, error, message):
        with pytest.raises(error, match=message):
            px.jvp(lambda x, *_: x, primals, tangents)


class TestLinearize:
    def test_values(self):
        y, f_jvp = px.linearize(lambda x: lax.sin(x) * 2.0, F32(1))
        assert float(y) == pytest.approx(2 * np.sin(1.0))
        for t in (1.0, -2.0):
            assert float(f_jvp(F32(t))) == pytest.approx(2 * np.cos(1.0) * t, rel=1e-6)

    def test_agrees_with_jvp_on_trees(self):
        def f(p):
            return {"y": lax.exp(p["a"]) * p["b"], "n": 3}

        p = {"a": X, "b": 2.0}
        t = {"a": np.ones(3, F32), "b": 0.5}
        _, f_jvp = px.linearize(f, p)
        assert_close(f_jvp(t)["y"], px.jvp(f, (p,), (t,))[1]["y"], rtol=1e-6)

    def test_aux(self):
        y, f_jvp, aux = px.linearize(lambda x: (x * x, x), 2.0, has_aux=True)
        assert (float(y), float(f_jvp(3.0)), float(aux)) == (4.0, 12.0, 2.0)

    def test_is_a_tree(self):
        _, f_jvp = px.jit(lambda x: px.linearize(lax.sin, x))(X)
        assert_close(f_jvp(np.ones(3, F32)), np.cos(X), rtol=1e-6)

    def test_a_constant_function(self):
        _, f_jvp = px.linearize(lambda x: 1.0, 2.0)
        assert float(f_jvp(3.0)) == 0.0

    def test_refuses_other_tangents(self):
        _, f_jvp = px.linearize(lax.sin, 1.0)
        with pytest.raises(ValueError, match="inconsistent with the original primal values"):
            f_jvp(X)
        with pytest.raises(TypeError, match="tree of tangents"):
            f_jvp(1.0, 2.0)


class TestLinearTranspose:
    def test_values(self):
        (ct,) = px.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
        assert float(ct) == 6.0
        m = np.arange(6, dtype=F32).reshape(2, 3)
        (ct,) = px.linear_transpose(lambda x: lax.dot(m, x), X)(np.array([1.0, 2.0], F32))
        assert_close(ct, m.T @ [1.0, 2.0], rtol=1e-6)

    def test_types_are_enough(self):
        t = px.linear_transpose(lambda x: x * 2.0, px.ShapeDtypeStruct((2,), F32))
        np.testing.assert_array_equal(t(np.ones(2, F32))[0], [2.0, 2.0])

    def test_constants_are_ignored(self):
        assert float(px.linear_transpose(lambda x: x + 1.0, 1.0)(2.0)[0]) == 2.0
        assert float(px.linear_transpose(lambda x: 1.0, 1.0)(2.0)[0]) == 0.0

    def test_integers(self):
        assert int(px.linear_transpose(lambda x: 3 * x, 1)(2)[0]) == 6

    @pytest.mark.parametrize(
        ("f", "ct", "message"),
        [
            (lambda x: x * x, 2.0, "linear in its arguments"),
            (lambda x: lax.convert_element_type(x, np.int32), 2, "from floats to floats"),
            (lambda x: 3.0 * x, X, "cotangent type does not match function output"),
            (lambda x: 3.0 * x, (1.0, 2.0), "cotangent tree does not match function output"),
        ],
    )
    def test_refuses(self, f, ct, message):
        with pytest.raises(TypeError, match=message):
            px.linear_transpose(f, 1.0)(ct)


class TestFwdAndBwd:
    @pytest.mark.parametrize("jitted", [True, False])
    def test_values(self, jitted):
        fwd, bwd = px.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1), jitted=jitted)
        y, residuals = fwd(2.0, 3.0)
        assert float(y) == 6.0
        assert [float(c) for c in bwd(residuals, 1.0)] == [3.0, 2.0]

    def test_one_argument_and_aux(self):
        fwd, bwd = px.fwd_and_bwd(lambda x, y: (x * y, x + 1.0), argnums=1, has_aux=True)
        y, residuals, aux = fwd(2.0, 3.0)
        assert (float(y), float(aux), float(bwd(residuals, 1.0))) == (6.0, 3.0, 2.0)


class TestArgumentsAmongResiduals:
    W = np.ones((3, 2), F32)
    ROWS = np.arange(6, dtype=F32).reshape(2, 3)

    @staticmethod
    def layer(x, w):
        return lax.tanh(lax.dot(x, w))

    def cotangents(self, pull):
        return [np.asarray(c) for c in pull(np.ones((2, 2), F32))]

    def test_default_saves_all(self):
        _, pull = px.vjp(self.layer, self.ROWS, self.W)
        assert pull.args_res[0] is self.ROWS and pull.args_res[1] is self.W
        assert [r.shape for r in pull.opaque_residuals] == [(2, 2)]
        assert len(tree_util.tree_leaves(pull)) == 3
        expected = px.vjp(self.layer, self.ROWS, self.W)[1]
        assert_close(self.cotangents(pull), self.cotangents(expected))

    @pytest.mark.parametrize("saveable", [False, (True, False), (False, False)])
    @pytest.mark.parametrize("jitted", [False, True])
    def test_excluded_arguments_are_restored(self, saveable, jitted):
        expected = self.cotangents(px.vjp(self.layer, self.ROWS, self.W)[1])
        forward = lambda *args: px.vjp(self.layer, *args, saveable_args=saveable)[1]
        pull = (px.jit(forward) if jitted else forward)(self.ROWS, self.W)
        assert repr(pull.args_res[1]) == "NotSaveable()"
        assert all(r.shape != self.W.shape for r in tree_util.tree_leaves(pull))
        with pytest.raises(ValueError, match="assign the arguments to the attribute args_res"):
            self.cotangents(pull)
        pull.args_res = [self.ROWS, self.W]
        for _ in range(2):
            assert_close(self.cotangents(pull), expected)
        call = px.jit(lambda pull, ct: pull(ct))
        assert_close([*call(pull, np.ones((2, 2), F32))], expected)

    def test_trees_and_arguments_that_are_not_residuals(self):
        def f(p, x):
            return lax.dot(x, p["a"]) + p["b"]

        params = {"a": self.W, "b": np.ones((2, 2), F32)}
        _, pull = px.vjp(f, params, self.ROWS, saveable_args=((False, True), True))
        assert repr(pull.args_res[0]) == "{'a': NotSaveable(), 'b': NotNeeded()}"
        pull.args_res[0] = params
        assert_close(np.asarray(pull(np.ones((2, 2), F32))[1]), np.full((2, 3), 2.0, F32))

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            (3, "must be a tree of bools.* contains 3 of type int"),
            ((True,), "must be .* a container has 1 entries where the arguments have"),
            (((True,), True), "must be .* has 1 entries where the arguments have"),
        ],
    )
    def test_invalid_prefix(self, spec, message):
        with pytest.raises(ValueError, match="saveable_args " + message):
            px.vjp(self.layer, self.ROWS, self.W, saveable_args=spec)
        with pytest.raises(ValueError, match="in_nzs " + message):
            px.linearize(self.layer, self.ROWS, self.W, in_nzs=spec)


class TestArgumentsWithoutTangents:
    @staticmethod
    def three(a, b):
        return {"u": a * 2.0, "v": [b * 3.0, a * b]}

    def test_vjp(self):
        _, pull = px.vjp(self.three, 2.0, 5.0, in_nzs=(True, False))
        assert pull.out_nzs == {"u": True, "v": [False, True]}
        assert [float(c) for c in pull({"u": 1.0, "v": [1.0, 1.0]})] == [7.0, 0.0]
        assert px.vjp(self.three, 2.0, 5.0)[1].out_nzs == {"u": True, "v": [True, True]}

    def test_linearize(self):
        _, f = px.linearize(self.three, 2.0, 5.0, in_nzs=(True, False))
        assert f.out_nzs == {"u": True, "v": [False, True]}
        out = f(1.0, 100.0)
        assert (float(out["u"]), *map(float, out["v"])) == (2.0, 0.0, 5.0)
