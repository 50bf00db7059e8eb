"""Names and source locations of the operations in manual regions, which profiles show."""

from __future__ import annotations

import re

import numpy as np
import pytest

import primax_distributed as pd
from primax_core import jit, lax, named_scope
from primax_distributed import P

X = np.ones((8, 4), np.float32)


@pytest.fixture(scope="module")
def mesh():
    return pd.make_mesh((4, 2), ("x", "y"), (pd.AxisType.Auto,) * 2)


def names(f, *args):
    text = jit(f).lower(*args).as_text(debug_info=True)
    return set(re.findall(r'loc\("jit\(step\)/([^"]*)"', text))


@pytest.mark.parametrize("axes", [{"x", "y"}, {"x"}])
def test_operations_have_names_and_lines(mesh, axes):
    def step(x):
        with named_scope("inner"):
            y = lax.sin(x)
        y = jit(lambda y: lax.cos(y) * y)(y)
        return lax.cond(lax.reduce_sum(y, (0, 1)) > 0, lambda y: lax.tan(y), lambda y: y, y)

    mapped = pd.shard_map(step, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names=axes)
    shown = names(mapped, X)
    assert {"shard_map", "shard_map/inner/sin", "shard_map/cond/branch_1_fun/tan"} <= shown
    text = jit(mapped).lower(X).as_text(debug_info=True)
    line = step.__code__.co_firstlineno + 2
    assert re.search(rf'test_names_in_regions.py":{line}:\d+ to :\d+\)', text)


def test_operations_of_executables_have_names(mesh):
    def step(x):
        with named_scope("inner"):
            return lax.sin(x)

    mapped = pd.shard_map(step, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    text = jit(mapped).lower(X).compile().as_text()
    assert re.search(r'sine\(.*op_name="jit\(step\)/shard_map/inner/sin"', text)


def test_regions_in_loops(mesh):
    def step(x):
        mapped = pd.shard_map(lax.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        return lax.fori_loop(0, 3, lambda i, x: mapped(x), x)

    assert "while/body/shard_map/sin" in names(step, X)
