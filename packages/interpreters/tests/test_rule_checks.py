"""The conformance kit detects planted faults in the rules of this wheel's kinds."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import lax
from primax_core.extend import Primitive, Sample, abstract, expand, f32, jvp, lower, samples
from primax_core.testing import CHECKS, check_primitive
from primax_interpreters import Check, Cost, cost, error_checks, taylor, testing
from primax_interpreters.checkify import FailedCheckError

OWN = ["jet", "checkify", "cost"]


def cube() -> Primitive:
    """The third power of an array, with all rules of this wheel's kinds."""
    p = Primitive("cube")
    p.rule(abstract)(lambda x: x)
    p.rule(expand)(lambda x: lax.mul(x, lax.mul(x, x)))
    p.rule(lower)(lambda ctx, x: ctx.call(lambda x: lax.integer_pow(x, 3), x))
    p.rule(jvp)(
        lambda ps, ts: (p.bind(*ps), lax.mul(ts[0], lax.mul(lax.full_like(ps[0], 3), ps[0] ** 2)))
    )

    @p.rule(taylor)
    def _taylor(primals, series):
        (x,), ((first, second),) = primals, series

        def times(n, *factors):
            out = lax.full_like(x, n)
            for factor in factors:
                out = lax.mul(out, factor)
            return out

        velocity = times(3, x, x, first)
        return p.bind(x), [velocity, lax.add(times(6, x, first, first), times(3, x, x, second))]

    p.rule(error_checks)(
        lambda args, outs: [Check(FailedCheckError, lambda: np.bool_(False), lambda: "never")]
    )
    p.rule(cost)(lambda ins, outs: Cost(flops=2 * ins[0].size))
    p.rule(samples)(lambda: [Sample(f32(3)), Sample(f32())])
    return p


def test_a_correct_primitive_passes():
    report = check_primitive(cube(), checks=OWN)
    assert report.ok, str(report)
    assert {v.outcome for v in report} == {"passed"}


def test_the_checks_are_part_of_the_kit():
    assert [CHECKS[name] for name in OWN] == [
        testing.check_jet, testing.check_checkify, testing.check_cost,
    ]  # fmt: skip
    outcomes = {v.outcome for v in check_primitive(lax.sort_p, checks=["checkify"])}
    assert outcomes == {"does not apply"}


def wrong_taylor(p):
    rule = p.rules[taylor]

    @p.rule(taylor, override=True)
    def _taylor(primals, series):
        out, terms = rule(primals, series)
        return out, [terms[0], lax.mul(terms[1], lax.full_like(out, 100))]


def wrong_expansion(p):
    p.rule(expand, override=True)(lambda x: lax.mul(x, lax.full_like(x, 9)))


def malformed_checks(p):
    p.rule(error_checks, override=True)(lambda args, outs: "none")


def negative_cost(p):
    p.rule(cost, override=True)(lambda ins, outs: Cost(flops=-1))


def malformed_cost(p):
    p.rule(cost, override=True)(lambda ins, outs: 3)


@pytest.mark.parametrize(
    ("plant", "check", "text"),
    [
        (wrong_taylor, "jet", "derivative 2 along a curve"),
        (wrong_expansion, "checkify", "under checkify"),
        (malformed_checks, "checkify", "the error_checks rule of cube"),
        (negative_cost, "cost", "flops=-1"),
        (malformed_cost, "cost", "returned 3, which is not a Cost"),
    ],
)
def test_planted_faults_are_caught(plant, check, text):
    p = cube()
    plant(p)
    failures = check_primitive(p, checks=OWN).failures
    assert {v.check for v in failures} == {check}
    assert text in failures[0].detail
