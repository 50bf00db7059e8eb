"""``ragged_all_to_all``, ``psum_scatter_start``, ``pcast`` and ``all_gather`` over axes of vmap."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core.lax.collective_gathers import all_gather, psum_scatter_start
from primax_core.lax.named_axes import pcast
from primax_core.lax.ragged_exchange import ragged_all_to_all

F32 = np.float32
I32 = np.int32
RNG = np.random.default_rng(0)
X, OUT = (RNG.standard_normal((2, n, 5)).astype(F32) for n in (3, 4))
ONE_EACH = (
    np.array([[0, 1], [0, 1]], I32), np.array([[1, 2], [1, 1]], I32),
    np.array([[0, 0], [1, 2]], I32), np.array([[1, 1], [2, 1]], I32),
)  # fmt: skip
TWO_EACH = (
    np.array([[0, 1, 1, 2], [0, 1, 0, 1]], I32), np.array([[1, 1, 2, 1], [1, 1, 0, 1]], I32),
    np.array([[0, 1, 0, 2], [2, 3, 3, 3]], I32), np.array([[1, 1, 1, 1], [2, 1, 0, 1]], I32),
)  # fmt: skip


def by_loop(x, out, starts, sizes, places, _):
    out = out.copy()
    n, k = starts.shape
    for s in range(n):
        for j in range(k):
            arriving = x[s, starts[s, j] : starts[s, j] + sizes[s, j]]
            out[j // (k // n), places[s, j] : places[s, j] + sizes[s, j]] = arriving
    return out


def exchange(*args):
    return px.vmap(lambda *a: ragged_all_to_all(*a, axis_name="i"), axis_name="i")(*args)


@pytest.mark.parametrize("indices", [ONE_EACH, TWO_EACH])
def test_values(indices):
    expected = by_loop(X, OUT, *indices)
    np.testing.assert_array_equal(exchange(X, OUT, *indices), expected)
    np.testing.assert_array_equal(px.jit(exchange)(X, OUT, *indices), expected)


def test_derivatives():
    f = lambda x, out: exchange(x, out, *ONE_EACH)
    dx, dout = X + 1, OUT - 2
    _, dot = px.jvp(f, (X, OUT), (dx, dout))
    np.testing.assert_array_equal(dot, by_loop(dx, dout, *ONE_EACH))
    ct = RNG.standard_normal(OUT.shape).astype(F32)
    cts = px.vjp(f, X, OUT)[1](ct)
    right = sum(np.vdot(np.asarray(c), d) for c, d in zip(cts, (dx, dout)))
    assert right == pytest.approx(np.vdot(ct, dot), rel=1e-5)


def test_another_mapped_axis():
    both = np.stack([X, 2 * X], 1)
    inner = lambda x, out, *rest: px.vmap(
        lambda x: ragged_all_to_all(x, out, *rest, axis_name="i")
    )(x)
    got = px.vmap(inner, axis_name="i")(both, OUT, *ONE_EACH)
    np.testing.assert_array_equal(np.asarray(got)[:, 1], by_loop(2 * X, OUT, *ONE_EACH))


@pytest.mark.parametrize(
    ("at", "wrong", "error", "match"),
    [
        (2, ONE_EACH[0].astype(F32), ValueError, "input_offsets must be integer type"),
        (3, ONE_EACH[0][..., None], ValueError, "send_sizes must be rank 1"),
        (4, ONE_EACH[0][:, :1], ValueError, "as many elements for each of the 2"),
        (0, X.astype(I32), TypeError, "same dtype"),
        (0, X[..., :2], ValueError, "same shape except for their first"),
    ],
)
def test_refused(at, wrong, error, match):
    args = [X, OUT, *ONE_EACH]
    args[at] = wrong
    with pytest.raises(error, match=match):
        exchange(*args)


def test_started_scatter():
    x = np.arange(4, dtype=F32).reshape(2, 2)
    f = lambda x: psum_scatter_start(x, "i").done()
    np.testing.assert_array_equal(px.vmap(f, axis_name="i")(x), x.sum(0))


@pytest.mark.parametrize("to", ["varying", "invarying", "reduced"])
def test_the_type_of_a_gathered_value_has_no_effect(to):
    x = np.arange(2, dtype=F32)
    got = px.vmap(lambda x: all_gather(x, "i", to=to), axis_name="i")(x)
    np.testing.assert_array_equal(got, [x, x])


def test_casts():
    x = np.arange(2, dtype=F32)
    cast = lambda to: px.vmap(lambda x: pcast(x, "i", to=to), axis_name="i")(x)
    np.testing.assert_array_equal(cast("varying"), x)
    with pytest.raises(ValueError, match="Got unexpected `to` value"):
        cast("elsewhere")
    with pytest.raises(ValueError, match="Got unexpected `to` value"):
        px.vmap(lambda x: all_gather(x, "i", to="elsewhere"), axis_name="i")(x)
    with pytest.raises(NameError, match="unbound axis name"):
        pcast(x, "i", to="varying")
