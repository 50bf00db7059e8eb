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

# Series and continued fractions, whose derivatives take XLA seconds to compile: two thirds of the
# time of all primitives.
COSTLY = {
    "beta_density", "betainc_grad_a", "betainc_grad_b", "gamma_density", "igamma", "igamma_grad_a",
    "igammac", "polygamma", "random_gamma_grad", "regularized_incomplete_beta", "zeta",
}  # fmt: skip
PRESENT = [p for p in SAMPLED if p.state_of(samples) is RuleState.PRESENT]

test_primitives = pytest.mark.rotate("prim", "check")(
    conformance(*(p for p in PRESENT if p.name not in COSTLY), floor=FEW_APPLY)
)

test_costly_primitives = pytest.mark.rotate("prim", "check", every=5, whole=True)(
    conformance(*(p for p in PRESENT if p.name in COSTLY))
)


def test_costly_primitives_exist():
    assert {p.name for p in PRESENT} >= COSTLY
