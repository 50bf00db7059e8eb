"""`custom_partitioning` beside the reference: shardings in callbacks, values, collectives."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import jax
import jax.experimental.custom_partitioning as jax_module
import numpy as np
import pytest

import primax as px
import primax.experimental.custom_partitioning as px_module
import primax.numpy

MOST = min(len(jax.devices()), len(px.devices()))
NEW = tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 12)
pytestmark = [
    pytest.mark.skipif(MOST < 8, reason="needs 8 devices on both sides"),
    pytest.mark.skipif(not NEW, reason="compared with the newest reference"),
]


def side(lib: Any, module: Any) -> SimpleNamespace:
    kind = lib.sharding.AxisType.Auto
    mesh = lib.make_mesh((2, 4), ("x", "y"), axis_types=(kind,) * 2)

    def divided(*spec):
        return lib.sharding.NamedSharding(mesh, lib.P(*spec))

    return SimpleNamespace(lib=lib, lax=lib.lax, divided=divided, **vars(module))


OURS, THEIRS = side(px, px_module), side(jax, jax_module)
A = np.arange(32, dtype=np.float32).reshape(8, 4)
B = (np.arange(64, dtype=np.float32) % 7 - 3).reshape(4, 16)
RULE = "i j, j k -> i k"


def whole(s):
    return lambda mesh, args, out: (mesh, s.lax.dot, s.divided(), (s.divided(), s.divided()))


def given(s):
    return lambda mesh, args, out: (
        mesh, s.lax.dot, out.sharding, tuple(a.sharding for a in args)
    )  # fmt: skip


def summed(s):
    return lambda mesh, args, out: (
        mesh, lambda a, b: s.lax.psum(s.lax.dot(a, b), "x"), s.divided(None, "y"),
        (s.divided(None, "x"), s.divided("x", "y")),
    )  # fmt: skip


def rows(s):
    return lambda mesh, args, out: (
        mesh, s.lax.dot, s.divided(("x", "y")), (s.divided(("x", "y")), s.divided())
    )  # fmt: skip


# The callback, the specs of the arguments, the rule and its options.
CASES = {
    "given": (given, ("x", None), (None, "y"), RULE, {}),
    "whole": (whole, ("x", None), (None, "y"), RULE, {}),
    "conflict": (whole, ("x", "y"), ("x", "y"), RULE, {}),
    "one axis twice": (whole, ("y", None), (None, "y"), RULE, {}),
    "contracted": (whole, (None, "x"), ("x", None), RULE, {}),
    "reduced": (summed, (None, "x"), ("x", "y"), RULE, {"reduction_factors": ("j",)}),
    "rows": (rows, ("x", None), (None, "y"), RULE, {}),
    "needed whole": (whole, ("x",), (None, "y"), RULE, {"need_replication_factors": ("i",)}),
    "permuted": (whole, ("x",), (None, "y"), RULE, {"permutation_factors": ("i",)}),
    "replicated": (given, (), (), RULE, {}),
    "leading": (given, ("x",), (None, "y"), "...i j, j k -> ...i k", {}),
    "products": (given, ("x",), (None, "y"), "(i l) j, j k -> (i l) k", {"i": 2, "l": 4}),
    "products of y": (whole, ("y",), (None, "x"), "(i l) j, j k -> (i l) k", {"i": 2, "l": 4}),
    "both axes": (whole, (("x", "y"),), (), "(i l) j, j k -> (i l) k", {"i": 4, "l": 2}),
    "unrelated": (whole, ("x",), (None, "y"), "i j, k l -> m n", {}),
}


def run(s, case, program=lambda f: f):
    callback, spec_a, spec_b, rule, options = CASES[case]
    seen = []

    def partition(mesh, args, out):
        seen.append([str(tuple(x.sharding.spec)) for x in (*args, out)])
        return callback(s)(mesh, args, out)

    f = s.custom_partitioning(lambda a, b: s.lax.dot(a, b))
    f.def_partition(partition, sharding_rule=rule, **options)
    a, b = s.lib.device_put(A, s.divided(*spec_a)), s.lib.device_put(B, s.divided(*spec_b))
    compiled = s.lib.jit(program(f)).lower(a, b).compile()
    out = compiled(a, b)
    kinds = "all-gather|all-reduce|all-to-all|collective-permute"
    used = set(re.findall(rf"({kinds})[-.\w]*\(", compiled.as_text()))
    spec = tuple(out.sharding.spec)
    return SimpleNamespace(
        seen=seen, value=np.asarray(out), used=used, spec=spec + (None,) * (2 - len(spec))
    )


@pytest.mark.parametrize("case", CASES)
def test_programs(case):
    ours, theirs = run(OURS, case), run(THEIRS, case)
    assert ours.seen == theirs.seen
    assert ours.spec == theirs.spec
    assert ours.used == theirs.used
    assert np.allclose(ours.value, theirs.value) and np.allclose(ours.value, A @ B)


PROGRAMS = {
    "twice": lambda s: lambda f: lambda a, b: f(a, b) + f(a * 2, b),
    "jitted twice": lambda s: lambda f: lambda a, b: s.lib.jit(f)(a, b) - s.lib.jit(f)(a, b * 2),
    "constraint": lambda s: lambda f: lambda a, b: f(
        s.lax.with_sharding_constraint(a, s.divided("y")), b
    ),
    "constrained result": lambda s: lambda f: lambda a, b: s.lax.with_sharding_constraint(
        f(a, b), s.divided(None, "x")
    ),
    "around": lambda s: lambda f: lambda a, b: s.lax.sin(f(s.lax.cos(a), b)).T,
    "loop": lambda s: lambda f: lambda a, b: s.lax.fori_loop(
        0, 2, lambda i, c: c + f(a, b), 0 * f(a, b)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_around_the_call(name):
    program = PROGRAMS[name]
    ours, theirs = (run(s, "whole", program(s)) for s in (OURS, THEIRS))
    assert ours.seen == theirs.seen
    assert ours.spec == theirs.spec
    assert np.allclose(ours.value, theirs.value, atol=1e-5)


WRONG = [
    "i j, j k -> i k z", "i j -> i k", "i j, j k", "i j, j k -> i k, i", "i, j k -> i k",
    "(i j) k, j k -> i k", "i j, j k -> i (k z)", "3 j, j k -> i k", "", "i j, j k -> -",
    "((i l) m) j, j k -> i k", "(i j, j k -> i k", "i j) , j k -> i k", "(i) j, j k -> i k",
    "i ... , j k -> i k", "... , ... -> ...", "i j, j k -> i k -> l", "_i j, j k -> _i k", 5,
]  # fmt: skip


@pytest.mark.parametrize("rule", WRONG)
def test_wrong_rules(rule):
    kinds = []
    for s in (OURS, THEIRS):
        with pytest.raises((TypeError, ValueError)) as caught:
            f = s.custom_partitioning(lambda a, b: s.lax.dot(a, b))  # noqa: B023
            f.def_partition(given(s), sharding_rule=rule)
            s.lib.jit(f).lower(
                s.lib.device_put(A, s.divided()), s.lib.device_put(B, s.divided())
            ).compile()
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


def test_names_and_texts():
    names = {n for n in dir(jax_module) if not n.startswith("_")}
    assert names <= set(dir(px_module))
    for s in (OURS, THEIRS):
        s.rule = s.SdyShardingRule(
            (s.ArrayMapping("i", s.CompoundFactor("j", "k")),), (s.ArrayMapping("i"),), j=2, k=4
        )
    assert str(OURS.rule) == str(THEIRS.rule)
    assert OURS.BATCHING == THEIRS.BATCHING
    assert vars(OURS.rule) == vars(THEIRS.rule)
