"""Results of rules are compared with the primitive's type, in errors that name the rule."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend import (
    Effect,
    Primitive,
    RuleResultError,
    Zero,
    abstract,
    batch,
    dce,
    discharge,
    effects,
    expand,
    instantiate,
    jvp,
    linearize,
    lower,
    memory_kinds,
    partial_eval,
    stage,
    transpose,
    transpose_direct,
)

X = np.arange(3.0, dtype=np.float32)
HALF = np.float32(0.5)


def halves(multiple: bool = False) -> Primitive:
    """A linear primitive with every rule; tests replace one of them."""
    p = Primitive("halves" if multiple else "half", multiple_results=multiple)

    def results(x):
        return [x, x] if multiple else x

    def half(x):
        return results(lax.mul(x, HALF))

    p.rule(abstract)(results)
    p.rule(lower)(lambda ctx, x: ctx.call(half, x))
    p.rule(jvp)(lambda ps, ts: (p.bind(*ps), p.bind(*ts)))
    p.rule(batch)(lambda axis, args, dims: (p.bind(*args), dims[0]))

    def transposed(ct, x):
        cts = [c for c in (ct if multiple else [ct]) if type(c) is not Zero]
        return [lax.mul(sum(cts[1:], cts[0]), HALF)]

    p.rule(transpose)(transposed)
    return p


def vmap(p):
    return px.vmap(p.bind)(X)


def vmap_rows(p):
    return px.vmap(p.bind)(np.stack([X, X]))


def forward(p):
    return px.jvp(p.bind, (X,), (X,))


def gradient(p):
    def f(x):
        out = p.bind(x)
        return lax.reduce_sum(out[0] if p.multiple_results else out, (0,))

    return px.grad(f)(X)


def transposed(p):
    return px.linear_transpose(p.bind, X)(X)


def call(p):
    return px.jit(p.bind)(X)


def trace(p):
    return px.make_jaxpr(p.bind)(X)


def linear_jaxpr(*avals):
    return stage(lambda *ts: list(ts), avals)


def to(dtype):
    return lambda x: lax.convert_element_type(x, dtype)


def total(x):
    return lax.reduce_sum(x, (0,))


F32 = px.make_jaxpr(lambda x: x)(X).in_avals[0]

# Kind, rule, use, text; for a primitive with one result.
SINGLE = [
    (batch, lambda axis, a, d: a[0], vmap, r"returned a value of type f32\[3\]"),
    (batch, lambda axis, a, d: (a[0], 7), vmap, r"7 as the mapped axis of .* f32\[3\]"),
    (batch, lambda axis, a, d: (a[0], -1), vmap, r"-1 as the mapped axis"),
    (batch, lambda axis, a, d: (a[0], "0"), vmap, r"'0', of type str as the mapped axis"),
    (batch, lambda axis, a, d: (total(a[0]), 0), vmap, r"0 as the mapped axis .* has no axes"),
    (batch, lambda axis, a, d: (a[0], None), vmap_rows, r"unbatched .* f32\[2,3\] where"),
    (batch, lambda axis, a, d: (a[0], 1), vmap_rows, r"mapped axis 1 of type f32\[2,3\]"),
    (batch, lambda axis, a, d: (None, 0), vmap, r"returned None in place of an array"),
    (batch, lambda axis, a, d: None, vmap, r"returned None;"),
    (jvp, lambda p, t: p[0], forward, r"returned a value of type f32\[3\]"),
    (jvp, lambda p, t: p[0], gradient, r"returned a value of type f32\[3\]"),
    (jvp, lambda p, t: (p[0], total(t[0])), forward, r"a tangent of type f32\[\] where .* f32"),
    (jvp, lambda p, t: (p[0], total(t[0])), gradient, r"a tangent of type f32\[\]"),
    (jvp, lambda p, t: (p[0], to("float16")(t[0])), gradient, r"a tangent of type f16\[3\]"),
    (jvp, lambda p, t: (total(p[0]), t[0]), forward, r"a result of type f32\[\]"),
    (jvp, lambda p, t: (p[0], None), forward, r"returned None in place of an array"),
    (jvp, lambda p, t: (Zero(F32), t[0]), forward, r"a symbolic zero of type f32\[3\] as a result"),
    (jvp, lambda p, t: (p[0], Zero(F32.update(shape=()))), forward, r"a tangent of type f32\[\]"),
    (linearize, lambda p, mask: p[0], gradient, r"returned a value"),
    (linearize, lambda p, mask: ([p[0]], None, [True]), gradient, r"None as the linear jaxpr"),
    (linearize, lambda p, mask: ([p[0]], linear_jaxpr(), [True]), gradient, r"0 arguments for 1"),
    (linearize, lambda p, mask: ([], linear_jaxpr(F32), []), gradient, r"0 results, but"),
    (linearize, lambda p, mask: ([p[0]], linear_jaxpr(F32.update(shape=())), [True]), gradient,
     r"linear jaxpr with one of its arguments of type f32\[\]"),
    (transpose, lambda ct, x: ct, transposed, r"returned a value .* as cotangents of operands"),
    (transpose, lambda ct, x: ct, gradient, r"returned a value .* as cotangents of operands"),
    (transpose, lambda ct, x: [ct, ct], transposed, r"2 cotangents of operands, but there are 1"),
    (transpose, lambda ct, x: [total(ct)], gradient, r"operand 0 of type f32\[\] where"),
    (transpose, lambda ct, x: [to("int32")(ct)], gradient, r"operand 0 of type i32\[3\]"),
    (transpose, lambda ct, x: ["ct"], gradient, r"returned 'ct', of type str"),
    (transpose_direct, lambda cts, values, linear, avals: cts[0], gradient, r"as cotangents"),
    (abstract, lambda x: (x,), trace, r"returned a tuple of 1; it must return `aval`"),
    (abstract, lambda x: [x], trace, r"returned a list of 1"),
    (abstract, lambda x: None, trace, r"returned None"),
    (abstract, lambda x: x.shape, trace, r"returned a tuple of 1"),
    (effects, lambda x: None, trace, r"returned None; it must return `frozenset of effects`"),
    (effects, lambda x: frozenset({Effect}), trace, r"is not an instance"),
    (lower, lambda ctx, x: [x], call, r"of type list; it must return `ir value`"),
    (lower, lambda ctx, x: None, call, r"returned None"),
    (lower, lambda ctx, x: 3, call, r"returned 3, of type int"),
    (lower, lambda ctx, x: ctx.call(total, x), call, r"tensor<f32> where .* tensor<3xf32>"),
    (lower, lambda ctx, x: ctx.call(to("int32"), x), call, r"tensor<3xi32> where"),
]  # fmt: skip

# The same for two results.
SEVERAL = [
    (batch, lambda axis, a, d: (a[0], 0), vmap, r"returned a value .* as results"),
    (batch, lambda axis, a, d: ([a[0]], [0]), vmap, r"returned 1 results, but there are 2"),
    (batch, lambda axis, a, d: ([a[0]] * 2, [0]), vmap, r"1 mapped axes, but there are 2"),
    (jvp, lambda p, t: ([p[0]] * 2, [t[0]]), forward, r"returned 1 tangents, but there are 2"),
    (jvp, lambda p, t: (p[0], t[0]), gradient, r"as results; .*, with a list of results"),
    (abstract, lambda x: x, trace, r"returned an aval of type f32\[3\]"),
    (abstract, lambda x: [x, None], trace, r"returned None among its results"),
    (lower, lambda ctx, x: [x], call, r"returned 1 results, but there are 2"),
    (lower, lambda ctx, x: x, call, r"must return `ir value`, with a list of results"),
]


@pytest.mark.parametrize(
    ("multiple", "kind", "rule", "use", "text"),
    [(multiple, *case) for multiple, cases in ((False, SINGLE), (True, SEVERAL)) for case in cases],
)
def test_a_result_that_does_not_fit_names_the_rule(multiple, kind, rule, use, text):
    p = halves(multiple)
    p.rule(kind, override=True)(rule)
    with pytest.raises(RuleResultError, match=text) as caught:
        use(p)
    line = rule.__code__.co_firstlineno
    message = str(caught.value)
    assert message.startswith(f"the {kind.name} rule of {p.name} ({__file__}:{line}) ")
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (__file__, line)


@pytest.mark.parametrize("use", [vmap, vmap_rows, forward, gradient, call, trace])
@pytest.mark.parametrize("multiple", [False, True])
def test_right_results_pass(use, multiple):
    use(halves(multiple))


def test_an_expansion_of_another_type():
    p = Primitive("twice")
    p.rule(abstract)(lambda x: x)
    p.rule(expand)(lambda x: total(x))
    with pytest.raises(RuleResultError, match=r"expand rule of twice .* f32\[\] where .* f32\[3\]"):
        px.vmap(p.bind)(np.stack([X, X]))


def test_dead_code():
    def use(rule):
        p = halves(True)
        p.rule(dce)(rule)
        jaxpr = px.make_jaxpr(lambda x: p.bind(x)[0])(X)
        from primax_core.extend import dce_jaxpr

        return dce_jaxpr(jaxpr, (True,))

    for rule, text in (
        (lambda used, eqn: eqn, "returned"),
        (lambda used, eqn: ([True, True], eqn), "2 marks of operands, but there are 1"),
        (lambda used, eqn: ([True], "eqn"), "'eqn', of type str as the new equation"),
        (lambda used, eqn: ([False], eqn), "1 operands, but marks 0 as used"),
        (
            lambda used, eqn: ([True], eqn.replace(outvars=eqn.outvars[1:])),
            "of the used results",
        ),
    ):
        with pytest.raises(RuleResultError, match=text):
            use(rule)


def test_references_and_saved_values():
    p = halves()
    p.rule(abstract, override=True)(lambda x: F32)
    p.rule(discharge)(lambda refs, args: args[0])
    ref = px.new_ref(X)
    with pytest.raises(RuleResultError, match=r"the discharge rule of half .* returned"):
        px.jit(lambda ref: p.bind(ref))(ref)
    q = halves()
    q.rule(partial_eval)(lambda split, eqn: eqn)
    with pytest.raises(RuleResultError, match=r"the partial_eval rule of half .* returned"):
        px.grad(px.checkpoint(lambda x: total(lax.sin(q.bind(x)))))(X)
    r = halves()
    r.rule(memory_kinds)(lambda eqn: [])
    with pytest.raises(RuleResultError, match=r"the memory_kinds rule of half .* 0 results"):
        px.jit(r.bind)(X)


def test_a_symbolic_zero_as_an_operand_is_named():
    p = halves()
    zero = Zero(F32)
    p.rule(jvp, override=True)(lambda ps, ts: (p.bind(*ps), lax.add(ts[0], zero)))
    for use in (forward, gradient):
        with pytest.raises(TypeError, match=r"the symbolic zero Zero\(float32\[3\]\) is used"):
            use(p)


def test_a_linear_operand_as_a_value_is_named():
    p = halves()
    p.rule(transpose, override=True)(lambda ct, x: [lax.mul(ct, x)])
    with pytest.raises(TypeError, match=r"the linear operand Linear\(float32\[3\]\) is") as e:
        gradient(p)
    last = traceback.extract_tb(e.value.__traceback__)[-1]
    assert last.filename == __file__


def test_a_derivative_that_is_not_linear_is_found():
    p = halves()
    p.rule(jvp, override=True)(lambda ps, ts: (p.bind(*ps), lax.mul(ts[0], ts[0])))
    text = rf"mul, on line {re.escape(__file__)}:\d+.*not linear in its operands 0, 1"
    with pytest.raises(TypeError, match=text):
        gradient(p)


def test_a_rule_without_code_is_named():
    class Rule:
        def __call__(self, axis, args, dims):
            return args[0]

    p = halves()
    p.rule(batch, override=True)(Rule())
    with pytest.raises(RuleResultError, match=r"the batch rule of half \(.*Rule object.*returned"):
        vmap(p)


# Derivatives of loops


def repeated(fused: Callable[..., Any] | None) -> Primitive:
    """``sin`` three times, by a loop."""
    p = Primitive("sines")
    p.rule(expand)(lambda x: lax.fori_loop(0, 3, lambda i, c: lax.sin(c), x))
    if fused is not None:
        p.rule(abstract)(lambda x: x)
        p.rule(jvp)(fused)
    return p


def by_one_loop(primals, tangents):
    """Primals and tangents from one loop."""

    def body(carry, _):
        x, t = carry
        return (lax.sin(x), lax.mul(lax.cos(x), t)), None

    return lax.scan(body, (primals[0], tangents[0]), None, length=3)[0]


def by_one_call(primals, tangents):
    return px.jit(lambda x, t: by_one_loop([x], [t]))(primals[0], tangents[0])


def by_branches(primals, tangents):
    def step(x, t):
        return lax.cond(
            lax.lt(lax.reduce_sum(x, tuple(range(x.ndim))), np.float32(100)),
            lambda x, t: (lax.sin(x), lax.mul(lax.cos(x), t)),
            lambda x, t: (x, t),
            x,
            t,
        )

    x, t = step(*step(*step(primals[0], tangents[0])))
    return x, t


@pytest.mark.parametrize("fused", [None, by_one_loop, by_one_call, by_branches])
def test_one_operation_may_compute_results_and_tangents(fused):
    p = repeated(fused)
    x = np.float32(0.7)

    def reference(x):
        return lax.sin(lax.sin(lax.sin(x)))

    for of in (
        px.grad,
        lambda f: px.grad(px.grad(f)),
        lambda f: px.jit(px.grad(f)),
        lambda f: px.jacfwd(px.grad(f)),
        lambda f: px.grad(px.checkpoint(f)),
        lambda f: lambda x: px.vjp(f, x)[1](np.float32(1))[0],
        lambda f: lambda x: px.linearize(f, x)[1](np.float32(1)),
    ):
        np.testing.assert_allclose(of(p.bind)(x), of(reference)(x), rtol=1e-5)
    np.testing.assert_allclose(
        px.vmap(px.grad(p.bind))(X), px.vmap(px.grad(reference))(X), rtol=1e-5
    )


def test_a_rule_that_needs_itself_again_is_named():
    p = Primitive("doubling", multiple_results=True)
    p.rule(abstract)(lambda *xs: list(xs))

    @p.rule(jvp)
    def _jvp(primals, tangents):
        outs = p.bind(*primals, *map(instantiate, tangents))
        return outs[: len(primals)], outs[len(primals) :]

    with pytest.raises(TypeError, match="the jvp rule of doubling computes results together with"):
        px.grad(lambda x: p.bind(x)[0])(np.float32(2))


def test_a_loop_without_a_known_length_says_so():
    p = Primitive("growing")
    p.rule(abstract)(lambda x: x)

    @p.rule(jvp)
    def _jvp(primals, tangents):
        return lax.while_loop(
            lambda c: lax.lt(c[0], np.float32(10)),
            lambda c: (lax.mul(c[0], c[0]), lax.mul(c[0], c[1])),
            (primals[0], tangents[0]),
        )

    with pytest.raises(ValueError, match="while_loop"):
        px.grad(p.bind)(np.float32(2))


def test_lines_of_a_staged_jaxpr_survive_its_evaluation():
    from primax_core.extend import eval_jaxpr, locate

    staged = stage(lambda x: [lax.sin(x)], [F32])
    outer = px.make_jaxpr(lambda x: eval_jaxpr(staged, [x]))(X)
    assert locate(outer.eqns[0].source_info).line == locate(staged.eqns[0].source_info).line
