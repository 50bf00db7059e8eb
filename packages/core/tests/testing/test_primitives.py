"""The conformance kit on every primitive of the core."""

from __future__ import annotations

import pytest

import primax_core._api
import primax_core._engine
import primax_core._transform
import primax_core.lax
from primax_core.extend import RuleState, samples
from primax_core.testing import primitives_of
from primax_core.testing.pytest import conformance

PRIMITIVES = [
    *primitives_of(primax_core._transform),
    *primitives_of(primax_core._engine),
    *primitives_of(primax_core.lax),
]
SAMPLED = [p for p in PRIMITIVES if p.state_of(samples) is not RuleState.UNSUPPORTED]


def test_every_primitive_has_samples():
    assert [p.name for p in PRIMITIVES if p.state_of(samples) is RuleState.MISSING] == []


# Tokens have no values, and the value of a dimension depends only on shapes.
FEW_APPLY = {"after_all": 0.25, "create_token": 0.25, "dim_as_value": 0.1}

test_primitives = pytest.mark.rotate("prim", "check")(
    conformance(*(p for p in SAMPLED if p.state_of(samples) is RuleState.PRESENT), floor=FEW_APPLY)
)
