"""The passes on jaxprs, whose results are compared as text; nothing is lowered or run."""

from __future__ import annotations

import pytest
from small_primitives import VECTOR, cosine_p, cube_p, scale_p, sine_p, times_p

from primax_core._ir.check import check_jaxpr
from primax_core._ir.effects import no_effects
from primax_core._ir.jaxpr import Jaxpr
from primax_core._trace.staging import eval_jaxpr, stage
from primax_core._transform.batching import Axis, batch_jaxpr, batched_aval
from primax_core._transform.dce import dce_jaxpr
from primax_core._transform.expansion import expanded
from primax_core._transform.jvp import jvp_jaxpr
from primax_core._transform.linearize import linearize_jaxpr
from primax_core._transform.transpose import transpose_jaxpr


def traced(fun, n: int = 1) -> Jaxpr:
    return stage(lambda *xs: [fun(*xs)], [VECTOR] * n)


def text(jaxpr: Jaxpr) -> str:
    check_jaxpr(jaxpr)
    return " ".join(str(jaxpr).replace(";", "").split())


def test_forward_mode():
    jaxpr, out_mask = jvp_jaxpr(traced(sine_p.bind), (True,))
    assert out_mask == (True,)
    assert text(jaxpr) == (
        "{ lambda a:f32[3] b:f32[3]. let c:f32[3] = sine a d:f32[3] = cosine a "
        "e:f32[3] = times d b in (c, e) }"
    )


def test_forward_mode_of_a_constant_operand_has_no_tangent():
    product = traced(lambda x, y: times_p.bind(x, y), 2)
    jaxpr, out_mask = jvp_jaxpr(product, (False, False))
    assert out_mask == (False,) and text(jaxpr) == text(product)
    jaxpr, _ = jvp_jaxpr(product, (False, True))
    assert len(jaxpr.invars) == 3 and [e.primitive for e in jaxpr.eqns] == [times_p, times_p]


def test_linearization_splits_values_from_the_linear_part():
    linearized = linearize_jaxpr(traced(sine_p.bind), (True,))
    assert text(linearized.forward) == (
        "{ lambda a:f32[3]. let b:f32[3] = sine a c:f32[3] = cosine a in (b, c) }"
    )
    assert linearized.n_outs == 1 and linearized.residuals == [("extra", 0)]
    assert linearized.linear is not None
    assert text(linearized.linear) == (
        "{ lambda a:f32[3] b:f32[3]. let c:f32[3] = times a b in (c,) }"
    )


def test_a_residual_that_is_an_input_is_not_stored():
    linearized = linearize_jaxpr(traced(lambda x, y: times_p.bind(x, y), 2), (False, True))
    assert linearized.residuals == [("in", 0)] and len(linearized.forward.outvars) == 1


def test_transposition_reverses_the_linear_part():
    chain = traced(lambda x, y: scale_p.bind(times_p.bind(x, y), factor=2.0), 2)
    jaxpr, out_mask = transpose_jaxpr(chain, (False, True), (True,))
    assert out_mask == (False, True)
    assert text(jaxpr) == (
        "{ lambda a:f32[3] b:f32[3]. let c:f32[3] = scale[factor=2.0] b "
        "d:f32[3] = times a c in (d,) }"
    )


def test_cotangents_of_an_operand_that_is_used_twice_are_added():
    twice = traced(lambda x: times_p.bind(scale_p.bind(x, factor=2.0), scale_p.bind(x, factor=3.0)))
    linear = linearize_jaxpr(twice, (True,)).linear
    assert linear is not None
    n = len(linear.invars) - 1
    jaxpr, _ = transpose_jaxpr(linear, (*[False] * n, True), (True,))
    assert sum(e.primitive.name == "add_any" for e in jaxpr.eqns) == 1


def test_batching():
    jaxpr, out_dims = batch_jaxpr(traced(sine_p.bind), (1,), Axis(5))
    assert out_dims == (1,) and jaxpr.in_avals == [batched_aval(VECTOR, 1, 5)]
    assert text(jaxpr) == "{ lambda a:f32[3,5]. let b:f32[3,5] = sine a in (b,) }"
    same, out_dims = batch_jaxpr(traced(sine_p.bind), (None,), Axis(5))
    assert out_dims == (None,) and same.in_avals == [VECTOR]


def test_dead_code_and_unused_arguments_are_dropped():
    def fun(x, y):
        cosine_p.bind(y)
        return [sine_p.bind(x), times_p.bind(y, y)]

    jaxpr = stage(fun, [VECTOR, VECTOR])
    smaller, used = dce_jaxpr(jaxpr, (True, False))
    assert list(used) == [True, False]
    assert [e.primitive for e in smaller.eqns] == [sine_p]


def test_an_expansion_stands_in_for_all_rules():
    jaxpr = traced(cube_p.bind)
    assert text(jaxpr) == "{ lambda a:f32[3]. let b:f32[3] = cube a in (b,) }"
    assert [e.primitive for e in expanded(cube_p, [VECTOR], {}).eqns] == [times_p, times_p]
    forward, _ = jvp_jaxpr(jaxpr, (True,))
    assert {e.primitive.name for e in forward.eqns} <= {"times", "add_any"}
    batched, _ = batch_jaxpr(jaxpr, (0,), Axis(2))
    assert [e.primitive for e in batched.eqns] == [times_p, times_p]
    assert jaxpr.effects == no_effects


@pytest.mark.parametrize("n", [1, 2, 3])
def test_forward_mode_composes(n):
    jaxpr = traced(sine_p.bind)
    for _ in range(n):
        jaxpr, _ = jvp_jaxpr(jaxpr, (True,) * len(jaxpr.invars))
        check_jaxpr(jaxpr)
    assert len(jaxpr.invars) == 2**n and len(jaxpr.outvars) == 2**n


def test_derived_jaxprs_are_kept():
    jaxpr = traced(sine_p.bind)
    assert jvp_jaxpr(jaxpr, (True,)) is jvp_jaxpr(jaxpr, (True,))
    again = stage(lambda x: eval_jaxpr(jaxpr, [x]), [VECTOR])
    first = jvp_jaxpr(again, (True,))[0]
    assert [e.primitive for e in first.eqns] == [sine_p, cosine_p, times_p]
