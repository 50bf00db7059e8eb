"""Evaluation of jaxprs in other domains, and traced functions with auxiliary results."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import lax, make_jaxpr
from primax_core._base.config import state
from primax_core._ir.avals import ShapedArray
from primax_core._ir.jaxpr import Literal
from primax_core._trace.interpret import EquationContext, eval_jaxpr, interpret
from primax_core._trace.staging import JaxprWriter, StagingTrace, stage, stage_with_aux
from primax_core._transform.linearize import TangentTrace
from primax_core.extend import interpret as public_interpret

SCALAR = ShapedArray((), np.dtype(np.float32))


def test_strings_as_values():
    jaxpr = stage(lambda x, y: [lax.mul(lax.add(x, y), np.float32(2))], [SCALAR, SCALAR])

    def step(eqn, values):
        return [f"{eqn.primitive}({', '.join(values)})"]

    out = interpret(jaxpr, ["x", "y"], step, constant=lambda c: f"{float(c):g}")
    assert out == ["mul(add(x, y), 2)"]


def test_literals_are_passed_on_without_a_domain_for_constants():
    jaxpr = stage(lambda x: [lax.mul(x, np.float32(2)), 3.0], [SCALAR])
    seen = []

    def step(eqn, values):
        seen.extend(values)
        return values[:1]

    outs = interpret(jaxpr, ["x"], step)
    assert seen[0] == "x" and type(seen[1]) is Literal
    assert outs[0] == "x" and type(outs[1]) is Literal and outs[1].aval.weak_type


def test_eval_jaxpr_computes():
    jaxpr = make_jaxpr(lambda x: lax.sin(x) * 2.0)(np.float32(1))
    (out,) = eval_jaxpr(jaxpr, [np.float32(1)])
    np.testing.assert_allclose(out, 2 * np.sin(np.float32(1)), rtol=1e-6)


def test_the_context_is_restored_after_an_error():
    jaxpr = make_jaxpr(lambda x: lax.sin(x))(np.float32(1))
    before = state.name_stack, state.source

    def fail(eqn, values):
        assert state.source is not None
        raise KeyError

    with pytest.raises(KeyError):
        interpret(jaxpr, [0], fail)
    assert (state.name_stack, state.source) == before
    with EquationContext(jaxpr) as context:
        context.enter(jaxpr.eqns[0])
    assert (state.name_stack, state.source) == before


def test_an_auxiliary_result_is_returned_with_the_jaxpr():
    jaxpr, aux = stage_with_aux(lambda x: ([lax.sin(x)], {"tree": 1}), [SCALAR])
    assert aux == {"tree": 1} and len(jaxpr.outvars) == 1


def test_traces_that_write_jaxprs_are_siblings():
    assert issubclass(StagingTrace, JaxprWriter) and issubclass(TangentTrace, JaxprWriter)
    assert not issubclass(TangentTrace, StagingTrace)


@pytest.mark.parametrize("count", [0, 2])
def test_a_step_with_another_number_of_results(count):
    jaxpr = make_jaxpr(lambda x: lax.sin(x))(np.float32(1))
    message = f"step returned {count} values for sin, which has 1 results"
    with pytest.raises(ValueError, match=message):
        public_interpret(jaxpr, [0], lambda eqn, values: [0] * count)


def test_a_step_without_a_sequence_of_results():
    jaxpr = make_jaxpr(lambda x: lax.sin(x))(np.float32(1))
    with pytest.raises(TypeError, match=r"step must return a sequence of values, .* sin, got 5"):
        public_interpret(jaxpr, [0], lambda eqn, values: 5)
    assert public_interpret(jaxpr, [1], lambda eqn, values: (v + 1 for v in values)) == [2]
