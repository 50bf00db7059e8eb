"""Types over explicit mesh axes against the reference: the same types, and refusals of the same."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from explicit_programs import PROGRAMS, Side, result
from oracle_differences import EXPLICIT_AXES_ACCEPTED, EXPLICIT_AXES_DIFFERENT

import primax as px

MOST = min(len(jax.devices()), len(px.devices()))
pytestmark = [
    pytest.mark.skipif(MOST < 8, reason="needs 8 devices on both sides"),
    pytest.mark.filterwarnings("ignore"),
]

SIDES = SimpleNamespace(ours=Side(px), theirs=Side(jax), plain=Side(px, placed=False))

LEAST_SHARE = 0.935
"""Of the programs that both sides agree on."""


def refused(text: str) -> bool:
    return "Error" in text.split(":")[0]


def outcome(name: str) -> str:
    ours, theirs = result(SIDES.ours, name), result(SIDES.theirs, name)
    if ours == theirs or (refused(ours) and refused(theirs)):
        return "same"
    return f"accepted: {ours}" if refused(theirs) else f"{theirs} and here {ours}"


@pytest.mark.rotate(every=4, whole=True)
def test_types():
    expected = {n: "accepted" for names in EXPLICIT_AXES_ACCEPTED.values() for n in names}
    expected |= dict.fromkeys(EXPLICIT_AXES_DIFFERENT, "different")
    outcomes = {name: outcome(name) for name in PROGRAMS}
    unexpected = {
        n: o
        for n, o in outcomes.items()
        if o != "same"
        and not o.startswith(expected.get(n, "nothing"))
        and n not in EXPLICIT_AXES_DIFFERENT
    }
    assert not unexpected
    counts = Counter(o == "same" for o in outcomes.values())
    assert counts[True] / len(outcomes) >= LEAST_SHARE


VALUES = [n for n in PROGRAMS if not n.startswith("sharding")][::5]


@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_one_device(name):
    try:
        with px.set_mesh(SIDES.ours.mesh):
            divided = PROGRAMS[name](SIDES.ours)
    except Exception as error:
        assert refused(f"{type(error).__name__}:")
        return
    whole = PROGRAMS[name](SIDES.plain)
    leaves = px.tree_util.tree_leaves
    for x, y in zip(leaves(divided), leaves(whole), strict=True):
        if px.dtypes.issubdtype(x.dtype, px.dtypes.prng_key):
            x, y = px.random.key_data(x), px.random.key_data(y)
        assert x.sharding._placement(x.ndim) is px.typeof(x).placement
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-4, atol=2e-4)
