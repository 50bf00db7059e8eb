"""Collectives over axes that ``vmap`` maps."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

F32 = np.float32
X3 = np.arange(3, dtype=F32)
X23 = np.arange(6, dtype=F32).reshape(2, 3)
X33 = np.arange(9, dtype=F32).reshape(3, 3)


def over(f, x, **options):
    """``f`` mapped over the axis named ``i``."""
    return px.vmap(f, axis_name="i", **options)(x)


def test_sums_are_not_mapped():
    assert float(over(lambda x: lax.psum(x, "i"), X3, out_axes=None)) == 3.0
    np.testing.assert_array_equal(over(lambda x: lax.psum(x, "i"), X3), [3.0, 3.0, 3.0])


def test_sums_of_numbers_are_products_with_the_size():
    assert over(lambda x: lax.psum(1, "i"), X3, out_axes=None) == 3
    assert over(lambda x: lax.psum(2.5, "i"), X3, out_axes=None) == 7.5
    assert float(over(lambda x: lax.psum(F32(2), "i"), X3, out_axes=None)) == 6.0


def test_sums_of_booleans_and_trees():
    assert int(over(lambda x: lax.psum(x > 0, "i"), X3, out_axes=None)) == 2
    out = over(lambda x: lax.psum({"a": x, "n": 1}, "i"), X3, out_axes=None)
    assert float(out["a"]) == 3.0 and out["n"] == 3


def test_mean_maximum_minimum():
    assert float(over(lambda x: lax.pmean(x, "i"), X3, out_axes=None)) == 1.0
    assert float(over(lambda x: lax.pmax(x, "i"), X3, out_axes=None)) == 2.0
    assert float(over(lambda x: lax.pmin(x, "i"), X3, out_axes=None)) == 0.0
    mean = over(lambda x: lax.pmean(x, "i"), np.arange(4), out_axes=None)
    assert float(mean) == 1.5 and mean.dtype == F32


def test_several_names_at_once():
    f = px.vmap(px.vmap(lambda x: lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i")
    np.testing.assert_array_equal(f(X23), np.full((2, 3), 15.0))
    g = px.vmap(px.vmap(lambda x: lax.psum(x, "i"), axis_name="j"), axis_name="i")
    np.testing.assert_array_equal(g(X23), np.broadcast_to(X23.sum(0), (2, 3)))


def test_the_innermost_of_two_equal_names_is_used():
    f = px.vmap(px.vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")
    np.testing.assert_array_equal(f(X23), np.broadcast_to(X23.sum(1)[:, None], (2, 3)))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gathering(axis):
    out = over(lambda x: lax.all_gather(x, "i", axis=axis), X23)
    expected = np.stack([np.stack(list(X23), axis)] * 2)
    np.testing.assert_array_equal(out, expected)


def test_gathering_tiled():
    out = over(lambda x: lax.all_gather(x, "i", tiled=True), X23, out_axes=None)
    np.testing.assert_array_equal(out, X23.reshape(6))


def test_all_to_all():
    x = np.arange(18, dtype=F32).reshape(3, 3, 2)
    out = over(lambda x: lax.all_to_all(x, "i", 0, 0), x)
    np.testing.assert_array_equal(out, x.swapaxes(0, 1))
    out = over(lambda x: lax.all_to_all(x, "i", 0, 1), x)
    np.testing.assert_array_equal(out, x.transpose(1, 2, 0))


def test_all_to_all_tiled():
    x = np.arange(36, dtype=F32).reshape(3, 6, 2)
    out = over(lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True), x)
    expected = [np.concatenate([x[s, 2 * d : 2 * d + 2] for s in range(3)], 1) for d in range(3)]
    np.testing.assert_array_equal(out, np.stack(expected))


def test_swapping_axes():
    np.testing.assert_array_equal(over(lambda x: lax.pswapaxes(x, "i", 0), X33), X33.T)


def test_scattered_sums():
    np.testing.assert_array_equal(over(lambda x: lax.psum_scatter(x, "i"), X33), X33.sum(0))
    x = np.arange(18, dtype=F32).reshape(3, 6)
    out = over(lambda x: lax.psum_scatter(x, "i", tiled=True), x)
    np.testing.assert_array_equal(out, x.sum(0).reshape(3, 2))


def test_permuting():
    out = over(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), X3)
    np.testing.assert_array_equal(out, [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(
        over(lambda x: lax.ppermute(x, "i", [(2, 0)]), X3), [2.0, 0.0, 0.0]
    )
    np.testing.assert_array_equal(
        over(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), X3), [2.0, 0.0, 1.0]
    )


def test_broadcasting_from_one_position():
    np.testing.assert_array_equal(over(lambda x: lax.pbroadcast(x, "i", 2), X3), [2.0, 2.0, 2.0])


def test_index_and_size():
    np.testing.assert_array_equal(over(lambda x: lax.axis_index("i"), X3), [0, 1, 2])
    assert over(lambda x: lax.axis_size("i"), X3, out_axes=None) == 3
    f = px.vmap(px.vmap(lambda x: lax.axis_index(("i", "j")), axis_name="j"), axis_name="i")
    np.testing.assert_array_equal(f(X23), np.arange(6).reshape(2, 3))


def test_over_another_axis_than_the_mapped_one():
    f = px.vmap(px.vmap(lambda x: lax.all_gather(x, "i"), axis_name="j"), axis_name="i")
    assert f(X23).shape == (2, 3, 2)
    np.testing.assert_array_equal(np.asarray(f(X23))[0], X23.T)


@pytest.mark.parametrize(
    "body",
    [
        lambda x: lax.psum(x * x, "i"),
        lambda x: x * lax.psum(x, "i"),
        lambda x: lax.reduce_sum(lax.sin(lax.all_gather(x, "i")), (0,)) * x,
        lambda x: lax.ppermute(x * x, "i", [(0, 2), (1, 0), (2, 1)]) * x,
        lambda x: lax.pmean(lax.sin(x), "i") * x,
    ],
    ids=["psum", "product", "gather", "permute", "mean"],
)
def test_derivatives_agree_with_the_whole_batch(body):
    def whole(v):
        return lax.reduce_sum(over(body, v), (0,))

    reverse = np.asarray(px.grad(whole)(X3 + 1))
    forward = np.asarray(px.jacfwd(whole)(X3 + 1))
    np.testing.assert_allclose(reverse, forward, rtol=1e-5)
    inside = over(px.grad(body), X3 + 1)
    np.testing.assert_allclose(inside, reverse, rtol=1e-5)


def test_inside_jit_scan_and_cond():
    f = px.jit(lambda x: x / lax.psum(x, "i"))
    np.testing.assert_allclose(over(f, X3 + 1), (X3 + 1) / 6, rtol=1e-6)

    def loop(x):
        return lax.scan(lambda c, _: (c + lax.psum(x, "i"), None), 0.0, None, length=2)[0]

    np.testing.assert_array_equal(over(loop, X3), [6.0, 6.0, 6.0])
    out = over(lambda x: lax.cond(True, lambda: lax.psum(x, "i"), lambda: x), X3)
    np.testing.assert_array_equal(out, [3.0, 3.0, 3.0])


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: lax.psum(x, "j"), NameError, "Found an unbound axis name: j.*in scope: i"),
        (lambda x: lax.axis_index("j"), NameError, "Found an unbound axis name: j"),
        (
            lambda x: lax.psum(x, "i", axis_index_groups=[[0], [1, 2]]),
            NotImplementedError,
            "groups",
        ),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "sources must be unique"),
        (lambda x: lax.ppermute(x, "i", [(0, 7)]), ValueError, r"lie in \[0, 3\)"),
        (lambda x: lax.ppermute(x, "i", 3), TypeError, "a list of pairs .*, got 3"),
        (lambda x: lax.psum(x, ("i", "i")), ValueError, "names an axis twice"),
        (lambda x: lax.all_gather(x, "i", axis=5), ValueError, "axis 5 is out of bounds"),
        (
            lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
            ValueError,
            "scatter_dimension 1 is out of bounds",
        ),
        (lambda x: lax.all_to_all(x, "i", 2, 0), ValueError, "split_axis 2 is out of bounds"),
        (
            lambda x: lax.all_to_all(lax.all_gather(x, "i"), "i", 0, 9),
            ValueError,
            "concat_axis 9 is out of bounds",
        ),
        (lambda x: lax.pshuffle(x, "i", [2, 0, 0]), ValueError, "does not represent a permutation"),
    ],
)
def test_refusals(f, error, message):
    with pytest.raises(error, match=message):
        over(f, X3)


def test_mismatched_shapes():
    with pytest.raises(ValueError, match=r"to equal x.shape\[split_axis\], but they are 2 and 3"):
        over(lambda x: lax.all_to_all(x, "i", 0, 0), X23)
    with pytest.raises(ValueError, match="cannot be divided over the named axis i of size 2"):
        over(lambda x: lax.psum_scatter(x, "i"), X23)


def test_outside_of_vmap():
    with pytest.raises(NameError, match=r"unbound axis name: i.*in scope: none"):
        lax.psum(1.0, "i")
    with pytest.raises(NameError, match="unbound axis name: i"):
        px.jit(lambda x: lax.psum(x, "i"))(1.0)


class TestSeveralNames:
    """Two mapped axes behave as one axis of their product, the last name fastest."""

    X = np.arange(2 * 3 * 6 * 12, dtype=np.float32).reshape(2, 3, 6, 12)

    @pytest.mark.parametrize(
        "collective",
        [
            lambda v, n: lax.all_to_all(v, n, 0, 1),
            lambda v, n: lax.all_to_all(v, n, 0, 0),
            lambda v, n: lax.all_to_all(v, n, 1, 0, tiled=True),
            lambda v, n: lax.all_to_all(v, n, 0, 1, tiled=True),
            lambda v, n: lax.all_gather(v, n, axis=1),
            lambda v, n: lax.all_gather(v, n, axis=1, tiled=True),
            lambda v, n: lax.psum_scatter(v, n),
            lambda v, n: lax.psum_scatter(v, n, scatter_dimension=1, tiled=True),
            lambda v, n: lax.pswapaxes(v, n, 0),
        ],
    )
    def test_as_one_axis(self, collective):
        inner = px.vmap(lambda v: collective(v, ("j", "i")), axis_name="i")
        both = px.vmap(inner, axis_name="j")(self.X)
        one = px.vmap(lambda v: collective(v, "k"), axis_name="k")(self.X.reshape(6, 6, 12))
        np.testing.assert_array_equal(both, np.reshape(one, (2, 3, *one.shape[1:])))
