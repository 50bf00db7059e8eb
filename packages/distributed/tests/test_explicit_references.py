"""References to arrays that are divided along explicit mesh axes."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
from primax_core import jit, lax, new_ref
from primax_distributed import P

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(scope="module")
def mesh():
    return pd.make_mesh((8,), ("x",))


@pytest.fixture
def ref(mesh):
    with pd.set_mesh(mesh):
        yield new_ref(pc.device_put(X, pd.NamedSharding(mesh, P("x", None))))


READS = {
    "whole": (lambda ref: ref[...], X, "float32[8@x,4]"),
    "slice": (lambda ref: ref[:, 1:3], X[:, 1:3], "float32[8@x,2]"),
    "column": (lambda ref: ref[:, 2], X[:, 2], "float32[8@x]"),
    "array": (lambda ref: ref[:, np.array([2, 0])], X[:, [2, 0]], "float32[8@x,2]"),
    "local": (lambda ref: pc.freeze(new_ref(ref[...])), X, "float32[8@x,4]"),
    "scan": (
        lambda ref: lax.scan(lambda c, i: (c + ref[...], None), ref[...], np.arange(3))[0],
        4 * X,
        "float32[8@x,4]",
    ),
}


@pytest.mark.parametrize("apply", [lambda f: f, jit])
@pytest.mark.parametrize("name", READS)
def test_reads_have_the_placement_of_the_part(ref, name, apply):
    read, expected, aval = READS[name]
    out = apply(read)(ref)
    assert str(pc.typeof(out)) == aval
    assert np.array_equal(out, expected)


def _write(ref, value):
    ref[...] = value


def _write_column(ref, value):
    ref[:, 1] = lax.index_in_dim(value, 0, axis=1, keepdims=False)


def _add(ref, value):
    ref[...] += value


WRITES = {
    "whole": (_write, lambda old, new: new),
    "column": (_write_column, lambda old, new: np.insert(old[:, [0, 2, 3]], 1, new[:, 0], 1)),
    "add": (_add, lambda old, new: old + new),
}


@pytest.mark.parametrize("apply", [lambda f: f, jit])
@pytest.mark.parametrize("divided", [True, False])
@pytest.mark.parametrize("name", WRITES)
def test_writes_keep_the_placement_of_the_reference(mesh, ref, name, divided, apply):
    write, expected = WRITES[name]
    value = pc.device_put(2 * X, pd.NamedSharding(mesh, P("x", None))) if divided else 2 * X
    apply(write)(ref, value)
    assert str(pc.typeof(ref[...])) == "float32[8@x,4]"
    assert np.array_equal(ref[...], expected(X, 2 * X))


def test_gradients_of_local_references(mesh, ref):
    def f(x):
        local = new_ref(x)
        local[:, 0] = local[:, 1] * 3.0
        return lax.reduce_sum(lax.square(pc.freeze(local)), axes=(0, 1))

    slope = jit(pc.grad(f))(ref[...])
    assert str(pc.typeof(slope)) == "float32[8@x,4]"
    assert np.array_equal(slope, 2 * X * np.array([0.0, 10.0, 1.0, 1.0], np.float32))


def test_a_part_that_cannot_be_divided(ref):
    with pytest.raises(pd.ShardingTypeError, match="axis 0 of the result has the size 1, which is"):
        jit(lambda ref: ref[0])(ref)
