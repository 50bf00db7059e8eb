"""The conformance kit detects faults that are planted in copies of correct primitives.

Each fault is registered with the checks that must detect it.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from primax_core import io_callback, lax
from primax_core.extend import (
    Effect,
    Eqn,
    Primitive,
    Sample,
    ShapedArray,
    Var,
    Zero,
    abstract,
    add_tangents,
    batch,
    dce,
    effects,
    expand,
    f32,
    hlo,
    i32,
    impl,
    instantiate,
    jvp,
    lower,
    move_axis,
    partial_eval,
    samples,
    transpose,
    typeof,
)
from primax_core.testing import (
    CHECKS,
    Failure,
    NotApplicable,
    add_check,
    check_primitive,
    check_sample,
)
from primax_core.testing.pytest import conformance


def scaled_sum() -> Primitive:
    """``factor`` times the sum of a matrix's rows, which is linear; all rules are correct."""
    p = Primitive("scaled_sum")

    def total(x, axis, factor):
        return lax.mul(
            lax.reduce_sum(x, (axis,)), lax.full_like(lax.reduce_sum(x, (axis,)), factor)
        )

    @p.rule(abstract)
    def _abstract(x, *, axis, factor):
        if x.dtype.kind != "f":
            raise TypeError(f"scaled_sum takes floats, got {x.dtype}")
        return x.update(shape=x.shape[:axis] + x.shape[axis + 1 :])

    @p.rule(lower)
    def _lower(ctx, x, *, axis, factor):
        return ctx.call(lambda x: total(x, axis, factor), x)

    @p.rule(jvp)
    def _jvp(primals, tangents, **params):
        out = p.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, p.bind(*tangents, **params)

    @p.rule(transpose)
    def _transpose(ct, x, *, axis, factor):
        other_axes = tuple(i for i in range(x.aval.ndim) if i != axis)
        scaled = lax.mul(ct, lax.full_like(ct, factor))
        return [lax.broadcast_in_dim(scaled, x.aval.shape, other_axes)]

    @p.rule(batch)
    def _batch(mapped, args, dims, *, axis, factor):
        (x,), (d,) = args, dims
        axis = axis + (d <= axis)
        return p.bind(x, axis=axis, factor=factor), d - (axis < d)

    @p.rule(samples)
    def _samples():
        yield Sample(f32(3, 2), axis=0, factor=2.0)
        yield Sample(f32(2, 0), axis=1, factor=-1.0)

    return p


def product_and_sum() -> Primitive:
    """Two results of two operands; all of its rules are correct."""
    p = Primitive("product_and_sum", multiple_results=True)

    @p.rule(abstract)
    def _abstract(x, y):
        if x.shape != y.shape:
            raise TypeError(f"shapes differ: {x.shape} and {y.shape}")
        return [x.update(weak_type=x.weak_type and y.weak_type)] * 2

    @p.rule(lower)
    def _lower(ctx, x, y):
        return [hlo.multiply(x, y), hlo.add(x, y)]

    @p.rule(jvp)
    def _jvp(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        product = total = Zero.like(x)
        if type(tx) is not Zero:
            product, total = lax.mul(tx, y), tx
        if type(ty) is not Zero:
            product, total = add_tangents(product, lax.mul(x, ty)), add_tangents(total, ty)
        return p.bind(x, y), [product, total]

    @p.rule(batch)
    def _batch(mapped, args, dims):
        return p.bind(*(move_axis(x, d, 0, mapped.size) for x, d in zip(args, dims))), [0, 0]

    @p.rule(samples)
    def _samples():
        yield Sample(f32(3, 2), f32(3, 2))
        yield Sample(f32(), f32())

    return p


@pytest.mark.parametrize("make", [scaled_sum, product_and_sum])
def test_good_primitives_pass(make):
    report = check_primitive(make())
    assert report.ok, str(report)
    assert {v.check for v in report} == set(CHECKS)


FAULTS = {}


def fault(name: str, *caught_by: str, make=scaled_sum):
    """Register a function that plants a fault, and the checks that must detect it."""

    def register(plant):
        FAULTS[name] = (make, plant, caught_by)
        return plant

    return register


@fault("wrong transpose", "transpose")
def wrong_transpose(p):
    good = p.rules[transpose]

    @p.rule(transpose, override=True)
    def _transpose(ct, x, *, axis, factor):
        return good(ct, x, axis=axis, factor=factor + 1)


@fault("batching off by an axis", "batching")
def batching_off_by_an_axis(p):
    good = p.rules[batch]

    @p.rule(batch, override=True)
    def _batch(mapped, args, dims, *, axis, factor):
        out, d = good(mapped, args, dims, axis=axis, factor=factor)
        return out, min(d + 1, typeof(out).ndim - 1)


@fault("batching ignores unmapped operands", "batching", "nested batching", make=product_and_sum)
def batching_ignores_unmapped_operands(p):
    @p.rule(batch, override=True)
    def _batch(mapped, args, dims):
        d = next(d for d in dims if d is not None)
        x, y = (a if e is not None else move_axis(lax.full_like(a, 1.0), None, d, mapped.size)
                for a, e in zip(args, dims))  # fmt: skip
        return p.bind(move_axis(x, d, 0, mapped.size), move_axis(y, d, 0, mapped.size)), [0, 0]


@fault("wrong jvp", "jvp")
def wrong_jvp(p):
    @p.rule(jvp, override=True)
    def _jvp(primals, tangents, *, axis, factor):
        out = p.bind(*primals, axis=axis, factor=factor)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, p.bind(*tangents, axis=axis, factor=1.0)


@fault("jvp forgets a symbolic zero", "symbolic zeros", make=product_and_sum)
def jvp_forgets_a_symbolic_zero(p):
    good = p.rules[jvp]

    @p.rule(jvp, override=True)
    def _jvp(primals, tangents):
        outs, dots = good(primals, tangents)
        if type(tangents[1]) is Zero:
            dots = [lax.add(instantiate(dots[0]), primals[0]), dots[1]]
        return outs, dots


@fault("the jvp rule reads values", "purity")
def the_jvp_rule_reads_values(p):
    good = p.rules[jvp]

    @p.rule(jvp, override=True)
    def _jvp(primals, tangents, **params):
        if float(lax.reduce_sum(primals[0], (0, 1))) > 0:
            return good(primals, tangents, **params)
        return good(primals, tangents, **params)


@fault("the batching rule depends on what it did before", "purity")
def the_batching_rule_depends_on_what_it_did_before(p):
    good, count = p.rules[batch], []

    @p.rule(batch, override=True)
    def _batch(mapped, args, dims, *, axis, factor):
        count.append(1)
        return good(mapped, args, dims, axis=axis, factor=factor + len(count))


@fault("wrong weak type", "weak type")
def wrong_weak_type(p):
    good = p.rules[abstract]

    @p.rule(abstract, override=True)
    def _abstract(x, **params):
        return good(x, **params).update(weak_type=True)


@fault("the abstract rule promises another dtype", "abstract")
def the_abstract_rule_promises_another_dtype(p):
    good = p.rules[abstract]

    @p.rule(abstract, override=True)
    def _abstract(x, **params):
        return good(x, **params).update(dtype=np.dtype(np.float16))


@fault("the abstract rule promises another shape", "abstract")
def the_abstract_rule_promises_another_shape(p):
    @p.rule(abstract, override=True)
    def _abstract(x, *, axis, factor):
        return ShapedArray(x.shape[axis : axis + 1], x.dtype)


@fault("the jvp rule changes its arguments", "mutation", make=product_and_sum)
def the_jvp_rule_changes_its_arguments(p):
    good = p.rules[jvp]

    @p.rule(jvp, override=True)
    def _jvp(primals, tangents):
        result = good(list(primals), list(tangents))
        primals[0], tangents[1] = primals[1], tangents[0]
        return result


@fault("the batching rule changes its list of axes", "mutation", make=product_and_sum)
def the_batching_rule_changes_its_list_of_axes(p):
    good = p.rules[batch]

    @p.rule(batch, override=True)
    def _batch(mapped, args, dims):
        result = good(mapped, list(args), list(dims))
        dims.reverse()
        args.reverse()
        return result


@fault("the operation writes into its operand", "mutation")
def the_primitive_writes_into_its_operand(p):
    def careless(x):
        if isinstance(x, np.ndarray):
            x += 1
        return p.bind(x, axis=0, factor=2.0)

    p.rule(samples, override=True)(lambda: [Sample(f32(3, 2)).set(call=careless)])


@fault("compiled differs from eager", "compiled")
def compiled_differs_from_eager(p):
    @p.rule(impl)
    def _run(x, *, axis, factor):
        return lax.mul(lax.reduce_sum(x, (axis,)), np.float32(factor + 1))


@fault("a parameter that cannot be hashed", "parameters")
def a_parameter_that_cannot_be_hashed(p):
    class Odd:
        def __hash__(self):
            return id(self)

        def __eq__(self, other):
            return False

    p.rule(samples, override=True)(lambda: [Sample(f32(3, 2), axis=0, factor=Odd())])
    p.rule(abstract, override=True)(lambda x, **_: x.update(shape=x.shape[1:]))
    p.rule(lower, override=True)(lambda ctx, x, **_: ctx.call(lambda x: lax.reduce_sum(x, (0,)), x))


@fault("the sample binds something else", "parameters")
def the_sample_binds_something_else(p):
    p.rule(samples, override=True)(lambda: [Sample(f32(2)).set(call=lax.sin)])


@fault("bad input is accepted", "bad input")
def bad_input_is_accepted(p):
    p.rule(samples, override=True)(
        lambda: [Sample(f32(3, 2), axis=0, factor=2.0).set(raises=TypeError)]
    )


@fault("bad input raises something unnamed", "bad input")
def bad_input_raises_something_unnamed(p):
    @p.rule(abstract, override=True)
    def _abstract(x, *, axis, factor):
        raise KeyError

    p.rule(samples, override=True)(
        lambda: [Sample(f32(3, 2), axis=5, factor=2.0).set(raises=TypeError)]
    )


@fault("the lowering is that of another operation", "jvp", make=product_and_sum)
def the_lowering_is_that_of_another_operation(p):
    @p.rule(lower, override=True)
    def _lower(ctx, x, y):
        return [hlo.multiply(x, x), hlo.add(x, y)]


@fault("a missing rule", "batching", "nested batching")
def a_missing_rule(p):
    del p.rules[batch]


@fault("the lowering ignores the factor, as all rules do", "expected")
def the_lowering_ignores_the_factor(p):
    p.rule(lower, override=True)(
        lambda ctx, x, *, axis, factor: ctx.call(lambda x: lax.reduce_sum(x, (axis,)), x)
    )

    @p.rule(transpose, override=True)
    def _transpose(ct, x, *, axis, factor):
        other_axes = tuple(i for i in range(x.aval.ndim) if i != axis)
        return [lax.broadcast_in_dim(ct, x.aval.shape, other_axes)]

    @p.rule(samples, override=True)
    def _samples():
        sample = Sample(f32(3, 2), axis=0, factor=2.0)
        yield sample.set(expect=lambda x: 2 * np.sum(np.asarray(x), 0))


@fault("wrong expansion", "expansion")
def wrong_expansion(p):
    p.rule(expand)(
        lambda x, *, axis, factor: lax.mul(lax.reduce_sum(x, (axis,)), np.float32(9 * factor))
    )


@fault("effects that the expansion does not have", "expansion")
def effects_that_the_expansion_does_not_have(p):
    p.rule(expand)(
        lambda x, *, axis, factor: lax.mul(lax.reduce_sum(x, (axis,)), np.float32(factor))
    )
    p.rule(effects)(lambda x, **params: frozenset({Noise()}))


class Noise(Effect):
    """An effect that nothing has."""


@fault("an effect that is not declared", "effects")
def an_effect_that_is_not_declared(p):
    rule = p.rules[lower]

    @p.rule(lower, override=True)
    def _lower(ctx, x, *, axis, factor):
        ctx.call(lambda x: io_callback(lambda x: None, None, x) or x, x)
        return rule(ctx, x, axis=axis, factor=factor)


@fault("dead code changes the results that remain", "dead code", make=product_and_sum)
def dead_code_changes_the_results_that_remain(p):
    @p.rule(dce)
    def _dce(used, eqn):
        outvars = [v for v, u in zip(eqn.outvars, used) if u]
        prim = lax.mul_p  # also for the sum
        return [True, True], eqn.replace(primitive=prim, outvars=outvars, params={})


@fault("saved values are those of another operation", "saved values")
def saved_values_are_those_of_another_operation(p):
    # Nonlinear, so that its derivative needs a residual.
    @p.rule(jvp, override=True)
    def _jvp(primals, tangents, **params):
        out = p.bind(*primals, **params)
        wave = lax.sin(primals[0])
        return out, p.bind(lax.mul(wave, tangents[0]), **params)

    @p.rule(lower, override=True)
    def _lower(ctx, x, *, axis, factor):
        return ctx.call(
            lambda x: lax.mul(lax.reduce_sum(lax.neg(lax.cos(x)), (axis,)), np.float32(factor)), x
        )

    def twice(x):
        return p.bind(p.bind(x, axis=0, factor=1.0), axis=0, factor=1.0)

    @p.rule(partial_eval)
    def _partial_eval(split, eqn):
        (v,) = eqn.outvars
        saved = Var(v.aval)
        wrong = eqn.replace(params={**eqn.params, "factor": -7.0}, outvars=[saved])
        read = Eqn(lax.neg_p, [saved], [v], {}, frozenset(), eqn.source_info, eqn.ctx)
        return wrong, read, [saved]

    p.rule(samples, override=True)(lambda: [Sample(f32(3, 2)).set(call=twice)])


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_caught_by_the_named_check(name):
    make, plant, caught_by = FAULTS[name]
    p = make()
    plant(p)
    failed_checks = {v.check for v in check_primitive(p).failures}
    assert set(caught_by) <= failed_checks, f"found by {failed_checks}"


def test_a_failure_has_python_code_that_reproduces_it():
    p = scaled_sum()
    FAULTS["wrong jvp"][1](p)
    (verdict, *_) = check_primitive(p, checks=["jvp"]).failures
    assert "find_primitive('scaled_sum'" in verdict.reproduction
    assert "check_sample(p, sample, 0, 'jvp', seed=0)" in verdict.reproduction
    assert "against central differences" in verdict.detail


def test_the_reproduction_runs_as_pasted(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from primax_core import lax\n"
        "from primax_core.extend import *\n"
        "mine_p = Primitive('mine')\n"
        "mine_p.rule(abstract)(lambda x: x)\n"
        "mine_p.rule(lower)(lambda ctx, x: ctx.call(lax.sin, x))\n"
        "mine_p.rule(jvp)(lambda ps, ts: (mine_p.bind(*ps), lax.mul(ts[0], lax.sin(ps[0]))))\n"
        "mine_p.rule(samples)(lambda: [Sample(f32(3))])\n"
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    code = (
        "import mine\nfrom primax_core.testing import check_primitive\n"
        "(failure,) = check_primitive(mine.mine_p, checks=['jvp']).failures\n"
        "print(failure.reproduction)"
    )
    pasted = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert pasted.returncode == 0, pasted.stderr
    command = [sys.executable, "-c", pasted.stdout]
    again = subprocess.run(command, env=env, capture_output=True, text=True)
    assert "against central differences" in again.stdout, again.stderr


def test_expected_failures_of_a_sample_must_fail():
    p = scaled_sum()
    sample = next(iter(p.rules[samples]()))
    known = sample.set(xfail={"jvp": "known"})
    (stale,) = check_primitive(p, [known], checks=["jvp"])
    assert not stale.ok and stale.outcome == "passed, but was expected to fail"
    FAULTS["wrong jvp"][1](p)
    (first, second) = check_primitive(p, [known, sample], checks=["jvp"])
    assert first.ok and first.outcome == "failed as expected" and first.detail == "known"
    assert not second.ok


def test_added_checks():
    def check(get):
        if get().sample.params["factor"] < 0:
            raise NotApplicable("a negative factor")
        raise Failure("always")

    add_check("always fails", check)
    try:
        outcomes = [v.outcome for v in check_primitive(scaled_sum(), checks=["always fails"])]
        assert outcomes == ["failed", "does not apply"]
        with pytest.raises(ValueError, match="the kit has another check 'always fails'"):
            add_check("always fails", lambda get: None)
    finally:
        del CHECKS["always fails"]
    with pytest.raises(ValueError, match="there is no check 'always fails'; the checks are"):
        check_sample(scaled_sum(), Sample(f32()), 0, "always fails")


def test_expected_failures_must_fail():
    p = scaled_sum()
    FAULTS["wrong jvp"][1](p)
    assert check_primitive(p, checks=["jvp"], xfail={"jvp": "known"}).ok
    stale = check_primitive(scaled_sum(), checks=["jvp"], xfail={"jvp": "known"})
    assert [v.outcome for v in stale.failures] == ["passed, but was expected to fail"]


def test_a_declared_absence_passes_and_a_missing_rule_fails():
    p = product_and_sum()
    del p.rules[batch]
    assert not check_primitive(p, checks=["batching"]).ok
    p.unsupported(batch, "it is an example")
    report = check_primitive(p, checks=["batching"])
    assert report.ok and "it is an example" in report[0].detail


def test_an_expansion_alone_makes_a_primitive_that_passes():
    p = Primitive("doubled_sine")

    @p.rule(expand)
    def _expand(x, *, factor):
        return lax.mul(lax.sin(x), lax.full_like(x, factor))

    p.rule(samples)(lambda: [Sample(f32(3), factor=2.0), Sample(f32(), factor=1.0)])
    report = check_primitive(p)
    assert report.ok, str(report)


def test_unknown_checks_and_missing_samples_are_refused():
    with pytest.raises(ValueError, match="there is no check 'gradient'"):
        check_primitive(lax.sin_p, checks=["gradient"])
    with pytest.raises(NotImplementedError, match="has no samples rule"):
        check_primitive(Primitive("bare"))
    with pytest.raises(ValueError, match="no samples to try"):
        check_primitive(lax.sin_p, [])


class TestUnderPytest:
    """Inapplicable checks are skipped, but most checks must apply."""

    def run(self, primitive, **options):
        """The outcomes of the generated test cases, by id."""
        test = conformance(primitive, **options)
        (mark,) = test.pytestmark
        outcomes = {}
        for param in mark.args[1]:
            try:
                test(*param.values)
                outcomes[param.id] = "passed"
            except pytest.skip.Exception as e:
                outcomes[param.id] = f"skipped: {e}"
            except AssertionError as e:
                outcomes[param.id] = f"failed: {e}"
        return outcomes

    def test_inapplicable_checks_are_skipped_with_the_reason(self):
        outcomes = self.run(lax.floor_p, checks=["abstract", "bad input"])
        assert outcomes["floor-0-abstract"] == "passed"
        integers = Primitive("integers")
        integers.rule(abstract)(lambda x: x)
        integers.rule(lower)(lambda ctx, x: ctx.call(lambda x: lax.neg(x), x))
        integers.rule(samples)(lambda: [Sample(i32(3))])
        outcomes = self.run(integers, checks=["abstract", "jvp"])
        assert outcomes == {
            "integers-0-abstract": "passed",
            "integers-0-jvp": "skipped: does not apply: no operand can be differentiated",
            "integers-applicable": "passed",
        }

    def test_a_primitive_to_which_nothing_applies_fails(self):
        idle = Primitive("idle")
        idle.rule(abstract)(lambda x: x)
        idle.rule(lower)(lambda ctx, x: [x])
        off = dict.fromkeys(CHECKS, "switched off")
        idle.rule(samples)(lambda: [Sample(f32(3)).set(without=off)])
        outcomes = self.run(idle)
        applicable = outcomes.pop("idle-applicable")
        assert set(outcomes.values()) == {"skipped: does not apply: switched off"}
        assert "of 15 checks only 0 apply to the samples of primitive idle (none)" in applicable
        assert self.run(idle, floor=0)["idle-applicable"] == "passed"
        assert self.run(idle, floor={"idle": 0.0})["idle-applicable"] == "passed"
        assert self.run(idle, floor={"other": 0.0})["idle-applicable"] == applicable

    def test_a_check_counts_if_it_applies_to_any_sample(self):
        split = Primitive("split")
        split.rule(abstract)(lambda x: x)
        split.rule(lower)(lambda ctx, x: [x])
        halves = [set(CHECKS) - {"abstract"}, set(CHECKS) - {"purity"}]
        split.rule(samples)(
            lambda: [Sample(f32(3)).set(without=dict.fromkeys(h, "off")) for h in halves]
        )
        assert self.run(split, floor=2 / 15)["split-applicable"] == "passed"
        text = self.run(split, floor=3 / 14)["split-applicable"]
        assert "only 2 apply to the samples of primitive split (abstract, purity)" in text
