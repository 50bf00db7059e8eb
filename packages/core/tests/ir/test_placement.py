"""Placements in types, with axes along which values vary as the only ones."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax
from primax_core._ir.placed_types import placements
from primax_core.extend import (
    JaxprCheckError,
    Primitive,
    ShapedArray,
    Zero,
    abstract,
    batch,
    check_jaxpr,
    instantiate,
    jaxprs_in,
    jvp,
    lower,
    place,
    stage,
    transpose,
    typeof,
)
from primax_core.extend.placements import (
    Placement,
    PlacementInference,
    install_placements,
    is_placed,
    unplaced,
)
from primax_core.extend.traces import axes_in_scope, named_axes


class Varying(Placement):
    """Values differ along some axes of a mesh."""

    __slots__ = ("names",)
    known: dict = {}

    @classmethod
    def of(cls, names):
        names = frozenset(names)
        if not names:
            return unplaced
        if names not in cls.known:
            cls.known[names] = self = object.__new__(cls)
            self.names = names
        return cls.known[names]

    @property
    def sharding(self):
        return f"varying over {sorted(self.names)}"

    def text(self, shape):
        return f"[{','.join(map(str, shape))}]{{V:{','.join(sorted(self.names))}}}"

    def without_axis(self, i):
        return self

    def with_axis(self, i):
        return self

    def cast(self, x):
        return vary(x, self.names)

    def uncast(self, x):
        raise TypeError(f"a value of type {typeof(x)} varies; sum it first")

    def difference(self, expected, actual):
        extra = sorted(names_of(actual) - names_of(expected))
        return f"the varying axes do not match; use lax.pcast(x, {extra}, to='varying')"


def names_of(aval):
    return aval.placement.names if is_placed(aval) else frozenset()


def with_names(aval, names):
    return aval.update(placement=Varying.of(names))


vary_p = Primitive("vary")
total_p = Primitive("total")


def vary(x, names):
    missing = frozenset(names) - names_of(typeof(x))
    return vary_p.bind(x, names=tuple(sorted(missing))) if missing else x


def total(x, *names):
    return total_p.bind(x, names=names)


def _linear(prim, back):
    @prim.rule(jvp)
    def _jvp(primals, tangents, *, names):
        out, (t,) = prim.bind(*primals, names=names), tangents
        return out, Zero.like(out) if type(t) is Zero else prim.bind(t, names=names)

    @prim.rule(transpose)
    def _transpose(ct, x, *, names):
        return [back.bind(instantiate(ct), names=names)]

    @prim.rule(batch)
    def _batch(axis, args, dims, *, names):
        return prim.bind(*args, names=names), dims[0]

    prim.rule(abstract)(lambda x, *, names: x)
    prim.rule(lower)(lambda ctx, x, *, names: x)  # of one device


_linear(vary_p, total_p)
_linear(total_p, vary_p)


@vary_p.rule(place)
def _vary_place(abstract, in_avals, params):
    (x,), (out,) = in_avals, abstract(*in_avals)
    return [with_names(out, names_of(x) | set(params["names"]))], None


@total_p.rule(place)
def _total_place(abstract, in_avals, params):
    (x,), (out,) = in_avals, abstract(*in_avals)
    if not names_of(x) >= set(params["names"]):
        raise TypeError(f"total over {params['names']} of {x}")
    return [with_names(out, names_of(x) - set(params["names"]))], None


class Inference(PlacementInference):
    """Results vary along the axes of all operands."""

    def infer(self, prim, abstract, in_avals, params):
        names = frozenset().union(*map(names_of, in_avals))
        casts = [None if names_of(a) == names else partial(vary, names=names) for a in in_avals]
        return [with_names(a, names) for a in abstract(*in_avals)], casts


@pytest.fixture(autouse=True)
def _inference(monkeypatch):
    monkeypatch.setattr(placements, "inference", Inference())
    with pc.enable_checks(True):
        yield


X = Varying.of("x")
Y = Varying.of("y")
VX = ShapedArray((4,), np.float32, False, X)
F4 = ShapedArray((4,), np.float32)
F4_ONES = np.ones(4, np.float32)


def body(f, *avals):
    jaxpr = pc.make_jaxpr(f)(*avals)
    return jaxpr


def types(f, *avals):
    """The types of the results, as text."""
    return [a.str_short() for a in body(f, *avals).out_avals]


def primitives(jaxpr):
    """The names of all primitives of a jaxpr."""
    names = []
    for eqn in jaxpr.eqns:
        names.append(eqn.primitive.name)
        for sub in jaxprs_in(eqn.params):
            names += primitives(sub)
    return names


def total_of(x):
    return lax.reduce_sum(x, (0,))


# Avals


def test_a_type_prints_its_placement():
    assert VX.str_short() == VX.str_short(True, False) == "f32[4]{V:x}"
    assert VX.str_short(False) == "float32[4]{V:x}"
    assert str(VX) == "float32[4]{V:x}"
    assert repr(VX) == "ShapedArray(float32[4]{V:x})"
    assert VX.sharding == "varying over ['x']"
    assert F4.sharding is unplaced and unplaced.sharding is unplaced


def test_types_are_interned_with_their_placement():
    assert ShapedArray([4], "float32", False, X) is VX is not F4
    assert VX.update(placement=unplaced) is F4 is VX.update(sharding=None)
    assert F4.update(sharding=X) is VX
    assert F4.update(dtype=np.int32) is ShapedArray((4,), np.int32)
    assert pickle.loads(pickle.dumps(F4)) is F4
    assert pickle.loads(pickle.dumps(unplaced)) is unplaced


def test_a_sharding_gives_the_placement():
    class Split:
        def _placement(self, ndim):
            return X if ndim == 1 else unplaced

    assert ShapedArray((4,), np.float32, sharding=Split()) is VX
    assert F4.update(sharding=Split()) is VX
    with pytest.raises(TypeError, match="must be a Sharding, a placement or None, got 'x'"):
        F4.update(sharding="x")


def test_axes_are_removed_and_added():
    assert VX.without_axis(0) is ShapedArray((), np.float32, False, X)
    assert VX.with_axis(1, 3) is ShapedArray((4, 3), np.float32, False, X)
    assert F4.with_axis(0, 2) is ShapedArray((2, 4), np.float32)


def test_the_rank_of_a_placed_type_is_not_updated():
    assert VX.update(shape=(5,)) is ShapedArray((5,), np.float32, False, X)
    with pytest.raises(ValueError, match=r"float32\[4\]\{V:x\} has a placement.*without_axis"):
        VX.update(shape=(4, 4))
    assert VX.update(shape=(4, 4), placement=X).shape == (4, 4)


def test_tangents_have_the_placement():
    assert VX.tangent_aval() is VX
    assert VX.update(dtype=np.int32).tangent_aval().placement is unplaced


def test_one_package_installs_placements():
    class Other(PlacementInference):
        def infer(self, prim, abstract, in_avals, params):
            return abstract(*in_avals), None

    with pytest.raises(RuntimeError, match="one package per process"):
        install_placements(Other())


# Inference


def test_results_are_placed_and_operands_cast():
    jaxpr = body(lambda x, p: lax.mul(lax.sin(x), p), VX, F4)
    assert [e.outvars[0].aval.str_short() for e in jaxpr.eqns] == ["f32[4]{V:x}"] * 3
    assert primitives(jaxpr) == ["sin", "vary", "mul"]
    assert "f32[4]{V:x} = vary[names=('x',)]" in str(jaxpr)


def test_numbers_are_cast():
    assert primitives(body(lambda x: lax.mul(x, np.float32(2)), VX)) == ["vary", "mul"] or (
        types(lambda x: x * 2.0, VX) == ["f32[4]{V:x}"]
    )


def test_unplaced_programs_are_not_changed():
    assert primitives(body(lambda x: lax.mul(x, x), F4)) == ["mul"]


def test_operations_with_a_rule_for_placements():
    jaxpr = body(lambda x: lax.add(total(x, "x"), 1.0), VX)
    assert jaxpr.out_avals == [F4]
    with pytest.raises(TypeError, match=r"total over \('x',\) of float32\[4\]$"):
        body(lambda x: total(x, "x"), F4)


def test_bodies_of_single_elements_do_not_say_placements():
    def f(x):
        return lax.reduce(x, np.float32(0), lambda a, b: lax.add(a, b), (0,))

    assert types(f, VX) == ["f32[]{V:x}"]

    def window(x):
        return lax.reduce_window(x, np.float32(0), lambda a, b: lax.mul(a, b), (2,), (1,), "VALID")

    assert types(window, VX) == ["f32[3]{V:x}"]


# Transformations


def test_gradients_have_the_placement_of_the_primals():
    def loss(p, x):
        return total(total_of(lax.mul(p, lax.sin(x))), "x")

    jaxpr = body(pc.grad(loss, (0, 1)), F4, VX)
    assert [a.str_short() for a in jaxpr.out_avals] == ["f32[4]", "f32[4]{V:x}"]
    assert "total" in primitives(jaxpr)


def test_gradients_of_gradients():
    def loss(p, x):
        return total(total_of(lax.mul(lax.mul(p, p), lax.sin(x))), "x")

    def second(p, x):
        return total_of(pc.grad(loss)(p, x))

    assert types(pc.grad(second, (0, 1)), F4, VX) == ["f32[4]", "f32[4]{V:x}"]


def test_tangents_of_a_sum_with_an_unplaced_operand():
    def f(p, x):
        return pc.jvp(lambda p: lax.add(x, p), (p,), (p,))

    assert types(f, F4, VX) == ["f32[4]{V:x}"] * 2
    assert types(lambda x: pc.jvp(lax.sin, (x,), (np.ones(4, np.float32),)), VX) == [
        "f32[4]{V:x}",
        "f32[4]{V:x}",
    ]


def test_cotangents_are_cast():
    def f(p, x):
        _, back = pc.vjp(lambda p: lax.mul(p, x), p)
        return back(np.ones(4, np.float32))

    assert types(f, F4, VX) == ["f32[4]"]


def test_zero_gradients_are_placed():
    assert types(pc.grad(lambda x: np.float32(1)), VX.without_axis(0)) == ["f32[]{V:x}"]
    assert types(lambda x: pc.vjp(lax.stop_gradient, x)[1](x), VX) == ["f32[4]{V:x}"]


def test_linearize():
    def f(p, x):
        y, linear = pc.linearize(lambda p: lax.mul(lax.sin(p), x), p)
        return y, linear(np.ones(4, np.float32))

    assert types(f, F4, VX) == ["f32[4]{V:x}"] * 2


def test_vmap():
    matrix = VX.with_axis(0, 3)
    assert types(pc.vmap(lambda x: lax.sin(x)), matrix) == ["f32[3,4]{V:x}"]
    assert types(pc.vmap(lambda p, x: lax.mul(p, x), (None, 0)), F4, matrix) == ["f32[3,4]{V:x}"]
    assert types(pc.vmap(pc.grad(lambda x: total(total_of(lax.sin(x)), "x"))), matrix) == [
        "f32[3,4]{V:x}"
    ]


def test_jit():
    def loss(p, x):
        return total(total_of(pc.jit(lambda p, x: lax.mul(p, lax.sin(x)))(p, x)), "x")

    assert types(pc.jit(loss), F4, VX) == ["f32[]"]
    assert types(pc.grad(pc.jit(loss), (0, 1)), F4, VX) == ["f32[4]", "f32[4]{V:x}"]


def test_scan():
    def f(p, xs):
        def step(c, x):
            return lax.add(c, lax.mul(p, x)), lax.sin(c)

        return lax.scan(step, vary(np.zeros(4, np.float32), "x"), xs)

    xs = VX.with_axis(0, 3)
    assert types(f, F4, xs) == ["f32[4]{V:x}", "f32[3,4]{V:x}"]

    def loss(p, xs):
        last, ys = f(p, xs)
        return total(lax.add(total_of(last), lax.reduce_sum(ys, (0, 1))), "x")

    assert types(pc.grad(loss, (0, 1)), F4, xs) == ["f32[4]", "f32[3,4]{V:x}"]
    assert types(lambda p, xs: pc.jvp(loss, (p, xs), (p, xs)), F4, xs) == ["f32[]"] * 2
    assert types(pc.vmap(pc.grad(loss), (0, None)), F4.with_axis(0, 2), xs) == ["f32[2,4]"]


def test_the_carry_of_a_scan_keeps_its_placement():
    def f(x):
        return lax.scan(lambda c, _: (lax.add(c, x), None), np.zeros(4, np.float32), length=2)

    with pytest.raises(TypeError) as e:
        body(f, VX)
    assert "has type float32[4] but the corresponding output carry component" in str(e.value)
    assert "has type float32[4]{V:x}, so the varying axes do not match; use lax.pcast" in str(
        e.value
    )


def test_while_loop():
    def f(x):
        def step(c):
            return lax.add(c[0], 1), lax.mul(c[1], x)

        return lax.while_loop(lambda c: lax.lt(c[0], 3), step, (0, x))[1]

    assert types(f, VX) == ["f32[4]{V:x}"]
    assert types(lambda x: pc.jvp(f, (x,), (x,)), VX) == ["f32[4]{V:x}"] * 2
    with pytest.raises(TypeError, match="the varying axes do not match"):
        one = lax.full((4,), 1, np.float32)
        body(lambda x: lax.while_loop(lambda c: True, lambda c: lax.mul(c, x), one), VX)


def test_cond():
    def f(p, x):
        return lax.cond(True, lambda p, x: lax.mul(p, x), lambda p, x: lax.sin(x), p, x)

    assert types(f, F4, VX) == ["f32[4]{V:x}"]
    assert types(pc.grad(lambda p, x: total(total_of(f(p, x)), "x"), (0, 1)), F4, VX) == [
        "f32[4]",
        "f32[4]{V:x}",
    ]
    with pytest.raises(TypeError, match=r"float32\[4\]\{V:x\} but .*the varying axes do not match"):
        body(lambda x: lax.cond(True, lambda x: x, lambda x: np.zeros(4, np.float32), x), VX)


def test_custom_jvp():
    @pc.custom_jvp
    def f(p, x):
        return lax.mul(p, x)

    @f.defjvp
    def _jvp(primals, tangents):
        return f(*primals), lax.mul(tangents[0], np.float32(3))  # without the placement

    assert types(lambda p, x: pc.jvp(lambda p: f(p, x), (p,), (p,)), F4, VX) == ["f32[4]{V:x}"] * 2
    grad = pc.grad(lambda p, x: total(total_of(f(p, x)), "x"), (0, 1))
    assert types(grad, F4, VX) == ["f32[4]", "f32[4]{V:x}"]
    assert types(pc.jit(grad), F4, VX) == ["f32[4]", "f32[4]{V:x}"]


def test_custom_vjp():
    @pc.custom_vjp
    def f(p, x):
        return lax.mul(p, x)

    f.defvjp(
        lambda p, x: (f(p, x), x),
        lambda x, ct: (total(lax.mul(ct, x), "x"), np.zeros(4, np.float32)),
    )
    grad = pc.grad(lambda p, x: total(total_of(f(p, x)), "x"), (0, 1))
    assert types(grad, F4, VX) == ["f32[4]", "f32[4]{V:x}"]
    assert types(pc.jit(grad), F4, VX) == ["f32[4]", "f32[4]{V:x}"]
    assert types(pc.vmap(grad, (None, 0)), F4, VX.with_axis(0, 2)) == [
        "f32[2,4]",
        "f32[2,4]{V:x}",
    ]


def test_a_cotangent_that_varies_is_refused():
    @pc.custom_vjp
    def f(p, x):
        return lax.mul(p, x)

    f.defvjp(lambda p, x: (f(p, x), (p, x)), lambda r, ct: (lax.mul(ct, r[1]), lax.mul(ct, r[0])))
    with pytest.raises(TypeError, match=r"float32\[4\]\{V:x\} varies; sum it first"):
        body(pc.grad(lambda p, x: total(total_of(f(p, x)), "x")), F4, VX)


@pytest.mark.parametrize("policy", [None, "dots_saveable"])
def test_checkpoint(policy):
    policy = policy and getattr(pc.checkpoint_policies, policy)

    def f(p, x):
        return lax.mul(lax.sin(lax.mul(p, x)), p)

    grad = pc.grad(lambda p, x: total(total_of(pc.checkpoint(f, policy=policy)(p, x)), "x"), (0, 1))
    assert types(grad, F4, VX) == ["f32[4]", "f32[4]{V:x}"]


def test_references():
    def f(x):
        ref = pc.new_ref(x)
        ref[...] = lax.mul(ref[...], np.float32(2))
        return ref[...]

    assert types(f, VX) == ["f32[4]{V:x}"]
    assert types(pc.grad(lambda x: total(total_of(f(x)), "x")), VX) == ["f32[4]{V:x}"]


def test_symbolic_zeros_of_several_results():
    def f(x):
        a, _ = lax.sort((x, lax.sin(x)), num_keys=1)
        return total(total_of(a), "x")

    assert types(pc.grad(f), VX) == ["f32[4]{V:x}"]


# The checker and lowering


def test_the_checker_compares_placements():
    jaxpr = body(lax.sin, VX)
    eqn = jaxpr.eqns[0]
    wrong = type(eqn.outvars[0])(F4)
    changed = jaxpr.replace(eqns=[eqn.replace(outvars=[wrong])], outvars=[wrong])
    with pytest.raises(JaxprCheckError, match=r"claims the type float32\[4\] .* float32\[4\]\{V:x"):
        check_jaxpr(changed)
    jaxpr = body(lambda p, x: lax.mul(p, x), F4, VX)
    mul = jaxpr.eqns[-1]
    uncast = jaxpr.replace(eqns=[mul.replace(invars=list(jaxpr.invars))])
    with pytest.raises(JaxprCheckError, match=r"reads .* of type .* cast"):
        check_jaxpr(uncast)


def test_lowering_ignores_placements():
    def f(p, x):
        q, r = lax.linalg.qr(lax.mul(p, x))
        return lax.add(q, r)

    m = ShapedArray((3, 3), np.float32)
    text = pc.jit(f).lower(m, m.update(placement=X)).as_text()
    assert "qr" in text or "geqrf" in text


def test_values_are_computed():
    def f(p):
        return pc.grad(lambda p: total(total_of(lax.sin(lax.mul(p, vary(p, "x")))), "x"))(p)

    p = np.arange(4, dtype=np.float32)
    expected = 2 * p * np.cos(p * p)
    np.testing.assert_allclose(pc.jit(f)(p), expected, rtol=1e-5)


def test_the_type_of_an_array_has_the_placement_of_its_sharding():
    out = pc.jit(lambda p: vary(p, "x"))(np.arange(4, dtype=np.float32))
    assert pc.typeof(out).placement is unplaced  # on one device nothing is divided


# Results that depend on a condition that varies


def test_branches_chosen_by_a_condition_that_varies():
    def f(x):
        return lax.cond(
            lax.gt(total_of(x), 0.0), lambda: np.float32(1), lambda: lax.sin(np.float32(0))
        )

    assert types(f, VX) == ["f32[]{V:x}"]
    assert types(pc.vmap(f), VX.with_axis(0, 2)) == ["f32[2]{V:x}"]


def test_loops_whose_condition_varies():
    def f(x):
        n = total_of(x)
        return lax.while_loop(
            lambda c: lax.lt(c[0], n),
            lambda c: (lax.add(c[0], 1.0), lax.mul(c[1], 2.0), np.float32(3)),
            (np.float32(0), np.float32(1), np.float32(2)),
        )

    assert types(f, VX) == ["f32[]{V:x}"] * 3
    assert types(pc.vmap(f), VX.with_axis(0, 2)) == ["f32[2]{V:x}"] * 3


def test_loops_of_the_library():
    from primax_core.lax.control import placed

    def step(c, x):
        return lax.mul(c, x), c

    def f(x):
        return lax.scan(step, lax.full((4,), 0, np.float32), x)

    with pytest.raises(TypeError, match="the varying axes do not match"):
        types(f, VX.with_axis(0, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placed, "written_by_library", lambda fun: True)
        assert types(f, VX.with_axis(0, 2)) == ["f32[4]{V:x}", "f32[2,4]{V:x}"]
        assert types(
            lambda x: lax.scan(lambda c, y: (np.zeros(4, np.float32), y), x, None, length=2)[0], VX
        ) == ["f32[4]{V:x}"]
        assert types(
            lambda x: lax.fori_loop(0, 3, lambda i, c: lax.add(c, x), 0 * F4_ONES), VX
        ) == ["f32[4]{V:x}"]


def test_linear_solves_with_a_matrix_that_varies():
    def solve(d, b):
        return lax.custom_linear_solve(
            lambda x: lax.mul(d, x), b, lambda matvec, b: lax.div(b, d), symmetric=True
        )

    assert types(solve, VX, F4) == ["f32[4]{V:x}"]
    grad = pc.grad(lambda d, b: total(total_of(solve(d, b)), "x"), (0, 1))
    assert types(grad, VX, F4) == ["f32[4]{V:x}", "f32[4]"]


def test_types_that_depend_on_the_axes_in_scope():
    """They are inferred again in each scope, and kept for it."""
    p = Primitive("over_axes")
    inferred = []
    p.rule(abstract)(lambda x, *, axes: x)

    @p.rule(place)
    def _place(abstract, in_avals, params):
        inferred.append(axes_in_scope())
        return [abstract(*in_avals)], None

    for _ in range(3):
        for size in (2, 3, 5):
            with named_axes({"i": size}, None):
                stage(lambda x: [p.bind(x, axes=("i",))], [F4])
    assert {axes["i"] for axes in inferred} == {2, 3, 5}
