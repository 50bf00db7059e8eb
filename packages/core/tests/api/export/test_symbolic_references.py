"""References to arrays of symbolic shapes."""

from __future__ import annotations

import numpy as np
import pytest
from portable import portable

import primax_core as px
from primax_core import export, lax, ref as r

X = np.arange(12, dtype=np.float32).reshape(3, 4)
AT = np.array([0, 2])


def doubling(ref) -> None:
    def body(i, c):
        ref[i, :] = ref[i] * 2 + ref[0]
        return c

    lax.fori_loop(0, ref.shape[0], body, 0)


def put(index, how):
    def f(ref):
        ref[index] = how(ref[index])

    return f


PROGRAMS = {
    "position": put(0, lambda x: x * 2),
    "last": put(-1, lambda x: x * 2),
    "one element": put((0, 1), lambda x: x + 5),
    "column": put((slice(None), 0), lambda x: x + 5),
    "rest": put(slice(1, None), lambda x: x + 5),
    "all but the last": lambda ref: ref[:-1],
    "first two": lambda ref: ref[:2],
    "steps": put(slice(None, None, 2), lambda x: x * 3),
    "positions": put(AT, lambda x: x * 3),
    "window": lambda ref: ref[px.ds(0, ref.shape[0])],
    "computed window": lambda ref: ref[px.ds(lax.convert_element_type(1, np.int32), 1)],
    "adding": lambda ref: r.addupdate(ref, slice(1, None), ref[1:]),
    "swapping": lambda ref: r.swap(ref, ..., ref[...] + 1),
    "loop": doubling,
    "scan": lambda ref: lax.scan(lambda c, i: (c, ref[i]), 0, lax.iota(np.int32, ref.shape[0]))[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_static_sizes(name) -> None:
    def f(x):
        ref = px.new_ref(x)
        out = PROGRAMS[name](ref)
        return out, px.freeze(ref)

    call = portable(f, *export.symbolic_args_specs((X,), "a, b"))
    for actual, expected in zip(px.tree.leaves(call(X)), px.tree.leaves(f(X)), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_indices_out_of_bounds_for_all_sizes_raise() -> None:
    (spec,) = export.symbolic_args_specs((X,), "a, 4")
    with pytest.raises(ValueError, match="Out of bound indexer: idx=4, dim=4"):
        px.eval_shape(lambda x: px.new_ref(x)[0, 4], spec)
    with pytest.raises(ValueError, match="Out of bound slice"):
        px.eval_shape(lambda x: px.new_ref(x)[px.ds(1, x.shape[0])], spec)
