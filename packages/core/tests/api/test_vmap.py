"""``vmap``: input and output axes, sizes, argument names, unmapped values."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

F32 = np.float32
X3 = np.arange(3, dtype=F32)
X2 = np.arange(2, dtype=F32)
X23 = np.arange(6, dtype=F32).reshape(2, 3)


def total(x):
    return lax.reduce_sum(x, tuple(range(np.ndim(x))))


class TestInAxes:
    @pytest.mark.parametrize("axis", [0, 1, -1, -2, (0,), [1]])
    def test_one_argument(self, axis):
        a = axis if isinstance(axis, int) else axis[0]
        expected = X23.sum(axis=1 - a % 2)
        np.testing.assert_allclose(px.vmap(total, in_axes=axis)(X23), expected)

    def test_none_is_unmapped(self):
        out = px.vmap(lambda x, y: x + y, in_axes=(0, None))(X3, 10.0)
        np.testing.assert_array_equal(out, X3 + 10)

    def test_prefixes_of_trees(self):
        f = px.vmap(lambda p, q: p["a"] * q[0] + p["b"], in_axes=({"a": 0, "b": None}, (0,)))
        np.testing.assert_array_equal(f({"a": X3, "b": 1.0}, (X3,)), X3 * X3 + 1)
        g = px.vmap(lambda p: p["a"] + p["b"], in_axes=({"a": 0, "b": 1},))
        np.testing.assert_array_equal(g({"a": X23, "b": X23.T}), 2 * X23)

    @pytest.mark.parametrize("in_axes", [(1,), 1, -1])
    def test_keyword_arguments_are_mapped_over_their_first_axis(self, in_axes):
        out = px.vmap(lambda x, k: x + k, in_axes=(None,))(1.0, k=X3)
        np.testing.assert_array_equal(out, X3 + 1)
        out = px.vmap(lambda x, k: total(x) + total(k), in_axes=in_axes)(X23, k=X23.T)
        np.testing.assert_array_equal(out, 2 * X23.sum(0))

    @pytest.mark.parametrize("leaf", [np.array(1), px.device_put(1), object(), "0", True])
    def test_axes_are_integers(self, leaf):
        for options in ({"in_axes": (leaf,)}, {"out_axes": {"a": leaf}}):
            with pytest.raises(TypeError, match=r"must be an int, None, or .* with a leaf of type"):
                px.vmap(lambda x: x, **options)

    def test_unmapped_arguments_may_be_any_values(self):
        out = px.vmap(lambda s, x: x * len(s), in_axes=(None, 0))("ab", X3)
        np.testing.assert_array_equal(out, X3 * 2)
        out = px.vmap(lambda x, y: x * float(np.sum(y)), in_axes=(0, None))(X3, X3)
        np.testing.assert_array_equal(out, X3 * 3)

    def test_size_zero(self):
        assert px.vmap(lambda x: x * 2.0)(np.zeros((0, 3), F32)).shape == (0, 3)


class TestOutAxes:
    @pytest.mark.parametrize("axis", [0, 1, -1, -2])
    def test_one_result(self, axis):
        expected = np.moveaxis(X23 * 2, 0, axis)
        np.testing.assert_array_equal(px.vmap(lambda x: x * 2.0, out_axes=axis)(X23), expected)

    def test_trees(self):
        f = px.vmap(lambda x: {"a": x, "b": (x, 7.0)}, out_axes={"a": 1, "b": (0, None)})
        out = f(X23)
        np.testing.assert_array_equal(out["a"], X23.T)
        assert float(out["b"][1]) == 7.0

    def test_none_passes_unmapped_values_through(self):
        assert px.vmap(lambda x: 2.0, out_axes=None)(X3) == 2.0

    def test_unmapped_results_are_repeated(self):
        out = px.vmap(lambda x: 1)(X3)
        np.testing.assert_array_equal(out, [1, 1, 1])
        assert out.weak_type

    def test_none_results(self):
        assert px.vmap(lambda x: (x, None))(X3)[1] is None


class TestSizes:
    def test_axis_size_alone(self):
        assert px.vmap(lambda: 1.0, axis_size=3)().tolist() == [1.0, 1.0, 1.0]
        assert px.vmap(lambda x: x + 1, in_axes=None, axis_size=2)(1.0).tolist() == [2.0, 2.0]

    def test_inconsistent(self):
        with pytest.raises(ValueError) as e:
            px.vmap(lambda x, y: x)(X23, {"k": X3})
        text = str(e.value)
        assert "vmap got inconsistent sizes for array axes to be mapped:" in text
        assert "* one axis had size 2: axis 0 of argument x of type float32[2,3];" in text
        assert "* one axis had size 3: axis 0 of argument y['k'] of type float32[3];" in text

    def test_inconsistent_with_axis_size(self):
        with pytest.raises(ValueError, match="`axis_size` argument was 4"):
            px.vmap(lambda x: x, axis_size=4)(X3)

    def test_inconsistent_keywords(self):
        with pytest.raises(ValueError, match=r"kwargs\['k'\] of type float32\[3\]"):
            px.vmap(lambda x, k: x)(X2, k=X3)


@pytest.mark.parametrize(
    ("in_axes", "args", "error", "message"),
    [
        ({"a": 0}, (X3,), TypeError, "in_axes must be an int, None, or a tuple"),
        ("a", (X3,), TypeError, "in_axes must be an int, None, or a tuple"),
        (0.5, (X3,), TypeError, "in_axes must be an int, None, or a tuple"),
        (True, (X3,), TypeError, "in_axes must be an int, None, or a tuple"),
        ((0.5,), (X3,), TypeError, "with those types as leaves"),
        ((0, 0), (X3,), ValueError, r"len\(in_axes\)=2, len\(args\)=1"),
        (2, (X23,), ValueError, "rank should be at least 3, but is only 2"),
        (-3, (X23,), ValueError, "along axis -3, which implies that its rank should be at least 3"),
        (0, (1.0,), ValueError, "rank should be at least 1, but is only 0"),
        (None, (X3,), ValueError, "at least one non-None value in in_axes or axis_size"),
        (({"b": 0},), ({"a": X3},), ValueError, "in_axes specification must be a tree prefix"),
        (0, ("a",), TypeError, "not a valid Primax type"),
    ],
)
def test_refused_in_axes(in_axes, args, error, message):
    with pytest.raises(error, match=message):
        px.vmap(lambda x: x, in_axes=in_axes)(*args)


def test_the_key_path_of_a_mismatched_prefix():
    with pytest.raises(ValueError) as e:
        px.vmap(lambda x, y: x, in_axes=(0, {"a": {"b": (0, 0)}}))(X3, {"a": {"b": (X3,)}})
    assert "vmap in_axes[1]['a']['b']" in str(e.value)


def test_the_length_error_mentions_keyword_arguments():
    with pytest.raises(ValueError, match="keyword arguments are always mapped"):
        px.vmap(lambda x, k: x, in_axes=(0, 0))(X3, k=X3)


@pytest.mark.parametrize(
    ("f", "out_axes", "error", "message"),
    [
        (lambda x: x, 2, ValueError, "axis 2 is out of bounds for array of dimension 1"),
        (lambda x: x, -2, ValueError, "axis -2 is out of bounds for array of dimension 1"),
        (
            lambda x: x,
            None,
            ValueError,
            "at vmap out_axes, got axis spec None but output was batched",
        ),
        (
            lambda x: (1.0, x),
            (None, None),
            ValueError,
            r"at vmap out_axes\[1\], got axis spec None",
        ),
        (lambda x: {"k": x}, None, ValueError, r"at vmap out_axes\['k'\], got axis spec None"),
        (lambda x: (x, x), (0, 0, 0), ValueError, "out_axes specification must be a tree prefix"),
        (lambda x: "s", 0, TypeError, "not a valid Primax type"),
        (lambda x: x, "a", TypeError, "vmap out_axes must be an int, None"),
    ],
)
def test_refused_out_axes(f, out_axes, error, message):
    with pytest.raises(error, match=message):
        px.vmap(f, out_axes=out_axes)(X3)


def test_no_arguments():
    with pytest.raises(ValueError, match="at least one argument containing an array or axis_size"):
        px.vmap(lambda: 1.0)()


def test_a_value_that_is_not_callable():
    with pytest.raises(TypeError, match="Expected a callable value, got 5"):
        px.vmap(5)


class TestComposition:
    def test_nested(self):
        outer = px.vmap(px.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
        np.testing.assert_array_equal(outer(X3, X2), np.outer(X3, X2))

    def test_jit_inside_and_outside(self):
        f = px.jit(lambda x: lax.sin(x) * 2.0)
        expected = np.sin(X23) * 2
        np.testing.assert_allclose(px.vmap(f)(X23), expected, rtol=1e-6)
        np.testing.assert_allclose(px.jit(px.vmap(px.vmap(f)))(X23), expected, rtol=1e-6)

    def test_of_grad_and_grad_of(self):
        def f(x):
            return total(lax.sin(x))

        np.testing.assert_allclose(px.vmap(px.grad(f))(X23), np.cos(X23), rtol=1e-6)
        g = px.grad(lambda x: total(px.vmap(f)(x)))(X23)
        np.testing.assert_allclose(g, np.cos(X23), rtol=1e-6)

    def test_over_closed_over_batches(self):
        out = px.vmap(lambda i: px.vmap(lambda x: x * i)(X3))(X2)
        np.testing.assert_array_equal(out, np.outer(X2, X3))

    def test_spmd_axis_name_changes_no_values(self):
        np.testing.assert_array_equal(px.vmap(lambda x: x * 2, spmd_axis_name="d")(X3), X3 * 2)

    def test_keeps_weak_type(self):
        weak = px.jit(px.vmap(lambda x: 1.0))(X3)
        assert weak.weak_type and px.vmap(lambda x: x * 2)(weak).weak_type

    def test_wraps_name_and_documentation(self):
        def f(x):
            "Doubles."
            return 2 * x

        mapped = px.vmap(f)
        assert mapped.__name__ == "f"
        assert mapped.__doc__ == "f mapped over axes of its arguments.\n\nDoubles."


class TestControlFlow:
    def test_a_mapped_predicate_runs_both_branches(self):
        f = px.vmap(lambda x: lax.cond(x > 0.5, lax.sin, lambda y: -y, x))
        np.testing.assert_allclose(f(X3), np.where(X3 > 0.5, np.sin(X3), -X3), rtol=1e-6)
        assert "select_n" in str(px.make_jaxpr(f)(X3)) and "cond" not in str(px.make_jaxpr(f)(X3))

    def test_an_unmapped_predicate_stays_a_cond(self):
        f = px.vmap(lambda p, x: lax.cond(p, lax.sin, lambda y: -y, x), in_axes=(None, 0))
        assert "cond[" in str(px.make_jaxpr(f)(True, X3))
        np.testing.assert_array_equal(f(False, X3), -X3)

    def test_the_branch_not_taken_does_not_poison_gradients(self):
        f = px.vmap(px.grad(lambda x: lax.cond(x > 0, lax.log, lambda y: y, x)))
        np.testing.assert_array_equal(f(np.array([0.0, 2.0, -1.0], F32)), [1.0, 0.5, 1.0])

    def test_a_mapped_index_is_clamped(self):
        branches = [lambda x: x, lambda x: x * 10, lambda x: x * 100]
        out = px.vmap(lambda i, x: lax.switch(i, branches, x))(np.array([-5, 1, 9]), X3 + 1)
        np.testing.assert_array_equal(out, [1.0, 20.0, 300.0])

    def test_a_mapped_while_condition_freezes_finished_examples(self):
        out = px.vmap(lambda x: lax.while_loop(lambda c: c < 5.0, lambda c: c + 1.75, x))(X3)
        np.testing.assert_array_equal(out, [5.25, 6.25, 5.5])

    def test_an_unmapped_while_condition(self):
        def f(x):
            return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2.0), (0, x))[1]

        np.testing.assert_array_equal(px.vmap(f)(X3), X3 * 8)

    def test_scan_with_mapped_parts(self):
        def f(c, xs):
            return lax.scan(lambda c, x: (c + x, c * x), c, xs)

        c, ys = px.vmap(f, in_axes=(0, None))(X2, X3)
        np.testing.assert_array_equal(c, X2 + 3)
        assert ys.shape == (2, 3)
        c, ys = px.vmap(f, in_axes=(None, 1), out_axes=(0, 1))(F32(1), X23.T)
        np.testing.assert_array_equal(c, 1 + X23.sum(1))
        assert ys.shape == (3, 2)


def test_values_are_not_known_inside():
    for f in (lambda x: x if x > 0 else -x, lambda x: x * float(x), lambda x: np.sin(x)):
        with pytest.raises(
            px.errors.PrimaxTypeError, match=r"made by vmap of <lambda> at .*test_vmap"
        ):
            px.vmap(f)(X3)


class TestSumMatch:
    def test_mapped_results_are_summed(self):
        f = px.vmap(lambda x: (x * 2.0, 3.0), out_axes=(None, None), sum_match=True)
        out, constant = f(X23)
        np.testing.assert_array_equal(out, 2 * X23.sum(0))
        assert float(constant) == 3.0

    def test_bools_are_counted(self):
        out = px.vmap(lambda x: x > 1.0, out_axes=None, sum_match=True)(X3)
        assert int(out) == 1 and out.dtype == np.int32
