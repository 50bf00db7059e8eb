"""``debug_nans`` and ``debug_infs`` name the operation inside of a `shard_map`, and its line."""

from __future__ import annotations

import re

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_numpy as jnp
from primax_core import lax
from primax_distributed import P, pmap, shard_map

X = np.arange(8, dtype=np.float32) - 4


def body(x):
    y = x * 2
    return lax.log(y) + lax.psum(y, "i")  # the line


def root(x):
    return jnp.sqrt(x)


def loop(x):
    return lax.fori_loop(0, 4, lambda i, c: root(c + 0 * lax.psum(c, "i") + 3) - 2.5, x)


def branch(x):
    return lax.cond(lax.psum(x[0], "i") < 0, lambda: root(x), lambda: x)


def region(f, **options):
    mesh = pd.make_mesh((4,), ("i",))
    return shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options)


def at(f, operation="log", line=1):
    number = f.__code__.co_firstlineno + line
    return rf"{operation} \(at .*test_nans_in_regions.py:{number}:\d+ \({f.__name__}\)\)"


CASES = {
    "eager": (lambda: region(body), at(body, line=2)),
    "jit": (lambda: pc.jit(lambda x: region(body)(x) + 1), at(body, line=2)),
    "without types": (lambda: region(body, check_vma=False), at(body, line=2)),
    "jit inside": (lambda: region(pc.jit(body)), at(body, line=2)),
    "checkpoint": (lambda: region(pc.checkpoint(body)), at(body, line=2)),
    "grad": (lambda: pc.grad(lambda x: region(body)(x).sum()), at(body, line=2)),
    "vmap": (lambda: lambda x: pc.vmap(region(body))(x[None]), at(body, line=2)),
    "loop": (lambda: region(loop), at(root, "sqrt")),
    "branch": (lambda: region(branch), at(root, "sqrt")),
    "pmap": (lambda: lambda x: pmap(root)(x[:4]), at(root, "sqrt")),
}


@pytest.mark.parametrize("name", CASES)
def test_operations_are_named(name):
    make, text = CASES[name]
    with pc.debug_nans(True), pytest.raises(FloatingPointError) as e:
        pc.block_until_ready(make()(X))
    assert re.search(rf"invalid value \(nan\) encountered in {text}$", str(e.value)), str(e.value)


def test_infinities_are_named():
    f = region(lambda x: lax.exp(x * 100.0))
    with pc.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) .* exp \(at .*"):
        f(X)


def test_sums_of_infinities_are_named():
    """Infinities of opposite signs are operands of a collective; its result is NaN."""
    f = region(lambda x: x + lax.psum(x * np.float32(np.inf), "i"))
    values = np.array([1, 1, -1, -1, 1, 1, 1, 1], np.float32)
    with pc.debug_nans(True), pytest.raises(FloatingPointError, match=r"psum\w* \(at .*nans_in"):
        f(values)


def test_finite_values_pass():
    expected = region(body)(X + 5)
    with pc.debug_nans(True), pc.debug_infs(True):
        assert np.allclose(region(body)(X + 5), expected)
        assert np.allclose(region(branch)(X + 5), X + 5)
