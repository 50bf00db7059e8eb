"""Random key primitives under the conformance kit."""

from __future__ import annotations

from primax_core.extend import RuleState, samples
from primax_core.testing import primitives_of
from primax_core.testing.pytest import conformance
from primax_numpy import random

PRIMITIVES = primitives_of(random)
SAMPLED = [p for p in PRIMITIVES if p.state_of(samples) is RuleState.PRESENT]


def test_primitives_have_samples() -> None:
    assert {p.name for p in PRIMITIVES} - {p.name for p in SAMPLED} == set()


test_primitives = conformance(*SAMPLED)
