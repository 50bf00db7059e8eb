"""Every sample of every primitive of every installed wheel, traced and differentiated in a region.

Its operands vary along a mesh axis. The same is done outside of a region; what works there must
work inside, and the types of results must be the same up to the axes along which they vary.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_distributed.custom_partitioning
from primax_core import lax
from primax_core.extend import (
    Operand,
    ShapedArray,
    check_jaxpr,
    jvp_jaxpr,
    known_primitives,
    linearize_jaxpr,
    samples,
    stage,
    transpose_jaxpr,
    walk,
)
from primax_core.extend.placements import unplaced
from primax_distributed import AxisType, P
from primax_distributed._manual_region import Region

WHEELS = ("primax_core", "primax_numpy", "primax_scipy", "primax_random", "primax_nn",
          "primax_sparse", "primax_interpreters", "primax_distributed")  # fmt: skip
MESH = pd.AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
REGION = Region(MESH, frozenset("xy"), True)


def primitives():
    for wheel in WHEELS:
        if importlib.util.find_spec(wheel) is None:
            continue
        package = importlib.import_module(wheel)
        for module in pkgutil.walk_packages(package.__path__, f"{wheel}."):
            if "__main__" not in module.name and not module.name.startswith(SKIPPED):
                try:
                    importlib.import_module(module.name)
                except ImportError:
                    continue
    return sorted(known_primitives(), key=lambda p: (p.home, p.name))


SKIPPED = ("primax_interpreters.profiler", "primax_distributed.run", "primax_core.testing")


def without_axes(avals):
    return [
        a.update(placement=unplaced, weak_type=False) if isinstance(a, ShapedArray) else a
        for a in avals
    ]


def derived(f, avals, varying):
    """The types that tracing, forward and reverse mode give, and the steps that failed."""
    jaxpr = stage(f, avals)
    check_jaxpr(jaxpr)
    types, failed = {"trace": jaxpr.out_avals}, {}
    mask = [isinstance(a, ShapedArray) and np.issubdtype(a.dtype, np.inexact) for a in avals]

    def forward():
        derivative, _ = jvp_jaxpr(jaxpr, mask)
        check_jaxpr(derivative)
        return derivative.out_avals

    def reverse():
        parts = linearize_jaxpr(jaxpr, mask)
        check_jaxpr(parts.forward)
        if parts.linear is None:
            return []
        check_jaxpr(parts.linear)
        n = len(parts.linear.invars) - sum(mask)
        back, has_cotangent = transpose_jaxpr(parts.linear, [False] * n + [True] * sum(mask))
        check_jaxpr(back)
        for a, v in zip(
            back.out_avals, [v for v, k in zip(parts.linear.invars, has_cotangent) if k]
        ):
            assert a.placement is v.aval.placement, (a, v.aval)
        return back.out_avals

    for name, step in (("forward", forward), ("reverse", reverse)):
        try:
            types[name] = step() if any(mask) else []
        except Exception as e:
            failed[name] = e
    return types, failed


def test_samples():
    tried, differentiated, problems = 0, 0, []
    for prim in primitives():
        rule = prim.rules.get(samples)
        if not callable(rule):
            continue
        for i, sample in enumerate(rule()):
            if sample.raises is not None:
                continue
            operands = [o for o in sample.operands if isinstance(o, Operand)]
            avals = [ShapedArray(o.shape, o.dtype) for o in operands]

            def f(*xs, prim=prim, sample=sample):
                rest = iter(xs)
                args = [next(rest) if isinstance(o, Operand) else o for o in sample.operands]
                out = sample.call(*args) if sample.call else prim.bind(*args, **sample.params)
                return pc.tree_util.tree_leaves(out)

            try:
                expected, _ = derived(f, avals, False)
            except Exception:
                continue  # the conformance kit reports the reason
            tried += 1
            where = f"{prim.name}-{i} ({prim.home})"
            with REGION.entered():
                local = [
                    REGION.local_aval(a.with_axis(0, 4), P("x")).without_axis(0) for a in avals
                ]
                try:
                    types, failed = derived(f, local, True)
                except Exception as e:
                    problems.append(f"{where}: {type(e).__name__}: {e}")
                    continue
            for step, avals_out in expected.items():
                if step in failed:
                    problems.append(f"{where} {step}: {failed[step]}")
                elif without_axes(types[step]) != without_axes(avals_out):
                    problems.append(f"{where} {step}: {types[step]}, expected {avals_out}")
            differentiated += "reverse" in types and bool(types["reverse"])
    print(tried, differentiated)
    assert not problems, "\n".join([f"{len(problems)} of {tried}", *problems[:40]])
    assert tried > 900 and differentiated > 450


V = REGION.local_aval(ShapedArray((16, 3), np.float32), P("x"))
"""The type of a value that varies along x."""


divided_sin = pd.custom_partitioning.custom_partitioning(lambda x: lax.sin(x))
divided_sin.def_partition(
    partition=lambda mesh, args, result: (mesh, lax.sin, result.sharding, [args[0].sharding]),
    sharding_rule="i j -> i j",
)
with_derivative = pc.custom_jvp(lambda x: divided_sin(x))
with_derivative.defjvp(lambda p, t: (divided_sin(*p), lax.cos(*p) * t[0]))
EXPLICIT = Region(
    pd.AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto, AxisType.Explicit)), frozenset("x"), True
)
E = EXPLICIT.local_aval(ShapedArray((16, 4), np.float32), P("x"))
PARTIAL = Region(MESH, frozenset("x"), True)
Y_OF_X = PARTIAL.local_aval(ShapedArray((16, 4), np.float32), P("x"))
OWN = {
    "pvary": (REGION, V, lambda v: lax.pcast(v, "y", to="varying")),
    "psum_invariant": (REGION, V, lambda v: lax.psum(v, "x")),
    "preduced": (REGION, V, lambda v: lax.pcast(v, "y", to="reduced")),
    "reduced_vary_cast": (
        REGION, V, lambda v: lax.pcast(lax.pcast(v, "y", to="reduced"), "y", to="varying"),
    ),
    "vary_unreduced_cast": (REGION, V, lambda v: lax.pcast(v, "x", to="unreduced")),
    "unreduced_psum": (REGION, V, lambda v: lax.psum(lax.pcast(v, "x", to="unreduced"), "x")),
    "all_gather_invariant": (REGION, V, lambda v: lax.all_gather(v, "x", to="invarying")),
    "all_gather_reduced": (REGION, V, lambda v: lax.all_gather(v, "x", to="reduced")),
    "unreduced_reduce_scatter": (
        REGION, V, lambda v: lax.psum_scatter(lax.pcast(v, "x", to="unreduced"), "x"),
    ),
    "custom_partitioning": (PARTIAL, Y_OF_X, with_derivative),
    "shard_map": (
        PARTIAL, Y_OF_X,
        pd.shard_map(
            lambda v: v * lax.psum(lax.sin(v), "y"), in_specs=P(None, "y"),
            out_specs=P(None, "y"), axis_names={"y"},
        ),
    ),
    "reshard": (EXPLICIT, E, lambda v: pd.reshard(v, P(None, "y"))),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_primitives_of_this_wheel(name):
    region, aval, f = OWN[name]
    with region.entered():
        jaxpr = stage(lambda v: [f(v)], [aval])
        assert name in {e.primitive.name for e in walk(jaxpr)}
        types, failed = derived(lambda v: [f(v)], [aval], True)
    assert not failed, failed
    assert types["trace"] and types["forward"] and types["reverse"] == [aval]
