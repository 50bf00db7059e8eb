"""Tests of jaxprs in the reference's convention: construction, evaluation, partial evaluation."""

from __future__ import annotations

import numpy as np
import pytest

import primax
import primax.api_util as api_util
import primax.core as core
import primax.extend.core as xcore
import primax.extend.linear_util as lu
import primax.extend.source_info_util as places
from primax import lax
from primax.extend.core import primitives
from primax.interpreters import partial_eval as pe

SCALAR = core.ShapedArray((), np.dtype("float32"))
VECTOR = core.ShapedArray((3,), np.dtype("float32"))
X = np.arange(3, dtype=np.float32)
TWO = np.float32(2)


# User-defined interpreters


def evaluated(jaxpr, consts, *args):
    env = {}

    def read(v):
        return v.val if type(v) is xcore.Literal else env[v]

    env.update(zip(jaxpr.invars, args))
    env.update(zip(jaxpr.constvars, consts))
    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*map(read, eqn.invars), **params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
    return [read(v) for v in jaxpr.outvars]


@primax.custom_jvp
def squared(x):
    return lax.mul(x, x)


squared.defjvp(lambda primals, tangents: (squared(*primals), lax.neg(tangents[0])))


@primax.custom_vjp
def cubed(x):
    return lax.mul(lax.mul(x, x), x)


cubed.defvjp(lambda x: (lax.mul(lax.mul(x, x), x), x), lambda x, ct: (lax.neg(ct),))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: lax.sin(x) * 2.0 + X,
        primax.jit(lambda x: lax.exp(x)),
        lambda x: lax.scan(lambda c, _: (lax.sin(c), None), x, None, length=3)[0],
        lambda x: lax.cond(lax.gt(lax.reduce_sum(x, (0,)), 0.0), lax.sin, lax.cos, x),
        squared,
        cubed,
    ],
    ids=["plain", "jit", "scan", "cond", "custom_jvp", "custom_vjp"],
)
def test_tutorial_interpreter(fun):
    jaxpr = primax.make_jaxpr(fun)(X)
    (actual,) = evaluated(jaxpr.jaxpr, jaxpr.consts, X)
    np.testing.assert_allclose(actual, fun(X), rtol=1e-6)
    (actual,) = core.eval_jaxpr(jaxpr.jaxpr, jaxpr.literals, X)
    np.testing.assert_allclose(actual, fun(X), rtol=1e-6)


@pytest.mark.parametrize("fun", [squared, cubed])
def test_interpreter_preserves_custom_rules(fun):
    jaxpr = primax.make_jaxpr(fun)(TWO)
    (derivative,) = [primax.grad(lambda x: evaluated(jaxpr, [], x)[0])(TWO)]
    assert derivative == -1


def test_custom_call_subfuns_are_replaceable():
    (eqn,) = primax.make_jaxpr(squared)(TWO).eqns
    params = eqn.primitive.get_bind_params(eqn.params)
    fun, jvp = params["subfuns"]
    tripled = lu.wrap_init(lambda x: [lax.mul(fun.call_wrapped(x)[0], 3.0)])
    (out,) = eqn.primitive.bind(TWO, **{**params, "subfuns": (tripled, jvp)})
    assert out == 12


# Construction


def equation(a, b):
    literal = xcore.Literal(TWO, SCALAR)
    return xcore.new_jaxpr_eqn([a, literal], [b], lax.mul_p, {}, xcore.no_effects)


def test_jaxpr_construction_and_check():
    a, b = xcore.gensym()(SCALAR), xcore.Var(SCALAR)
    eqn = equation(a, b)
    jaxpr = xcore.Jaxpr([], [a], [b], [eqn])
    xcore.check_jaxpr(jaxpr)
    assert isinstance(jaxpr, xcore.Jaxpr) and isinstance(jaxpr, xcore.ClosedJaxpr)
    assert isinstance(eqn, xcore.JaxprEqn)
    assert str(jaxpr) == "{ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }"
    assert xcore.jaxpr_as_fun(jaxpr)(np.float32(3)) == [6]
    assert primax.jit(xcore.jaxpr_as_fun(jaxpr))(np.float32(3)) == [6]
    other = eqn.replace(outvars=[xcore.DropVar(SCALAR)])
    assert isinstance(other.outvars[0], xcore.DropVar)


def test_consts_bind_the_first_variables():
    v, w, out = (xcore.Var(VECTOR) for _ in range(3))
    eqn = xcore.new_jaxpr_eqn([v, w], [out], lax.add_p, {}, xcore.no_effects)
    opened = xcore.Jaxpr([v], [w], [out], [eqn])
    assert (opened.constvars, opened.invars) == ([], [v, w])
    closed = xcore.ClosedJaxpr(opened, [X])
    assert (closed.constvars, closed.invars) == ([v], [w])
    assert xcore.ClosedJaxpr(closed, []).invars == [v, w]
    assert xcore.Jaxpr([v], [w], [out], [eqn], consts=[X]).consts[0] is X
    for jaxpr, consts, args in ((opened, [X], [X]), (closed, [X], [X]), (opened, [], [X, X])):
        np.testing.assert_array_equal(core.eval_jaxpr(jaxpr, consts, *args)[0], X + X)
    with pytest.raises(ValueError, match="takes 1 constants and 1 arguments, but got 0"):
        core.eval_jaxpr(closed, [], X)


def test_invalid_jaxprs_raise():
    with pytest.raises(xcore.JaxprTypeError, match="not bound before"):
        xcore.check_jaxpr(xcore.Jaxpr([], [], [xcore.Var(SCALAR)], []))
    with pytest.raises(TypeError, match="needs constvars, invars, outvars and eqns"):
        xcore.Jaxpr([], [])
    with pytest.raises(TypeError, match="3 constants for a jaxpr with 1"):
        xcore.ClosedJaxpr(primax.make_jaxpr(lax.sin)(TWO), [1, 2, 3])


def test_debug_info_has_a_source_location():
    info = xcore.DebugInfo("jit", "f at some/file.py:12", ("x",), None)
    assert (info.name, info.filename, info.line) == ("f", "some/file.py", 12)
    assert info.func_src_info == "f at some/file.py:12" and isinstance(info, xcore.DebugInfo)


def test_sub_jaxprs():
    jaxpr = primax.make_jaxpr(lambda x: lax.cond(True, primax.jit(lax.sin), lax.cos, x))(TWO)
    (eqn,) = (e for e in jaxpr.eqns if e.primitive is primitives.cond_p)
    assert len(list(xcore.jaxprs_in_params(eqn.params))) == 2
    assert len(list(xcore.subjaxprs(jaxpr))) == 2


# Types


def test_types_of_values():
    assert isinstance(SCALAR, core.AbstractValue)
    assert isinstance(primax.typeof(TWO), core.AbstractValue) and not isinstance(
        TWO, core.AbstractValue
    )
    token = lax.create_token()
    assert isinstance(token, xcore.Token) and isinstance(primax.typeof(token), xcore.AbstractToken)
    assert not isinstance(SCALAR, xcore.AbstractToken)
    assert xcore.mapped_aval(3, 0, VECTOR) == SCALAR
    assert xcore.unmapped_aval(3, 0, SCALAR) == VECTOR
    assert xcore.unmapped_aval(3, None, SCALAR) is SCALAR
    with pytest.raises(ValueError, match="axis 0"):
        xcore.mapped_aval(4, 0, VECTOR)
    assert SCALAR.to_tangent_aval() is SCALAR
    assert xcore.primal_dtype_to_tangent_dtype(np.dtype("int32")) == primax.float0
    assert xcore.valid_jaxtype(X) and not xcore.valid_jaxtype("text")
    assert np.float32 in xcore.array_types


def test_concrete_or_error():
    assert xcore.concrete_or_error(int, 3.5) == 3
    with pytest.raises(primax.errors.ConcretizationTypeError, match="for the shape"):
        primax.jit(lambda x: xcore.concrete_or_error(int, x, "for the shape"))(1)


def test_former_names_are_deprecated():
    with pytest.warns(DeprecationWarning, match=r"primax\.extend\.core\.Literal"):
        assert core.Literal is xcore.Literal
    with pytest.warns(DeprecationWarning, match=r"primax\.typeof"):
        assert core.get_aval is primax.typeof
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        core.nothing


# Primitives


def test_lookup_of_every_primitive():
    names = [n for n in dir(primitives) if n.endswith("_p") and not n.startswith("random_")]
    for name in names:
        assert isinstance(getattr(primitives, name), xcore.Primitive), name
    assert primitives.add_jaxvals_p.bind(1.0, 2.0) == 3
    assert primitives.empty2_p.bind(dtype=np.dtype("int8"), memory_space=None).dtype == np.int8
    with pytest.raises(AttributeError, match="nothing_p"):
        primitives.nothing_p


def test_random_primitives_need_the_numpy_wheel():
    pytest.importorskip("primax_numpy")
    for name in ("random_bits_p", "random_gamma_p", "random_split_p"):
        assert getattr(primitives, name).name == name[:-2]


called_p = xcore.create_call_primitive("called")
outlined_p = xcore.create_call_primitive("outlined", inline_jax_late=False)
DOUBLE = primax.make_jaxpr(lambda x: [lax.mul(x, TWO)])(TWO)


@pytest.mark.parametrize("prim", [called_p, outlined_p, primitives.call_p])
def test_transformed_calls_keep_the_primitive(prim):
    def call(x):
        return prim.bind(x, call_jaxpr=DOUBLE, kept=1)[0]

    def names(fun, *args):
        return {e.primitive.name for e in primax.make_jaxpr(fun)(*args).eqns}

    assert call(TWO) == primax.jit(call)(TWO) == 4
    assert primax.grad(call)(TWO) == 2
    assert primax.grad(primax.grad(lambda x: call(x) ** 3))(TWO) == 96
    assert primax.jvp(call, (TWO,), (TWO,)) == (4, 4)
    assert primax.vmap(call)(X).tolist() == [0, 2, 4]
    assert primax.linear_transpose(call, TWO)(TWO) == (4,)
    for transformed, x in ((primax.vmap(call), X), (primax.grad(call), TWO)):
        assert names(transformed, x) == {prim.name}


def test_custom_transpose_rule_fills_accumulators():
    prim = xcore.Primitive("mine")
    prim.multiple_results = True

    def rule(cts, x, *, call_jaxpr):
        x.accum(lax.neg(cts[0]))

    xcore.register_call_primitive_rules(prim, transpose_rule=rule)
    back = primax.linear_transpose(lambda x: prim.bind(x, call_jaxpr=DOUBLE)[0], TWO)
    assert back(TWO) == (-2,)


# Partial evaluation and dead code


def wrapped(fun, *args):
    return lu.wrap_init(fun, debug_info=api_util.debug_info("test", fun, args, {}))


def test_partially_known_arguments():
    def fun(x, y):
        return [lax.sin(x), lax.mul(y, TWO), lax.mul(lax.cos(x), y)]

    pvals = [pe.PartialVal.known(np.float32(0)), pe.PartialVal.unknown(SCALAR)]
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(wrapped(fun, TWO, TWO), pvals)
    assert [p.is_known() for p in outs] == [True, False, False]
    assert outs[0].get_known() == 0 and outs[1].get_aval() == SCALAR
    assert [e.primitive.name for e in jaxpr.eqns] == ["mul", "mul"]
    assert core.eval_jaxpr(jaxpr, consts, np.float32(5)) == [10, 5]
    pvals = [pe.PartialVal.known(np.float32(0)), pe.PartialVal.unknown(SCALAR)]
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(wrapped(fun, TWO, TWO), pvals, True)
    assert [p.is_known() for p in outs] == [False] * 3
    assert core.eval_jaxpr(jaxpr, consts, np.float32(5)) == [0, 10, 5]


def test_partial_evaluation_under_a_transformation():
    def split(x):
        pvals = [pe.PartialVal.known(x), pe.PartialVal.unknown(SCALAR)]
        fun = wrapped(lambda x, y: [lax.mul(squared(x), y)], TWO, TWO)
        jaxpr, _, consts = pe.trace_to_jaxpr_nounits(fun, pvals)
        return core.eval_jaxpr(jaxpr, consts, np.float32(3))[0]

    assert split(TWO) == primax.jit(split)(TWO) == 12
    assert primax.grad(split)(TWO) == -3


def test_jaxprs_of_wrapped_functions():
    fun = wrapped(lambda x: [lax.mul(x, X)], X)
    jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(fun, [VECTOR])
    assert len(jaxpr.invars) == 2 and avals == [VECTOR] and len(consts) == 1
    np.testing.assert_array_equal(core.eval_jaxpr(jaxpr, consts, X)[0], X * X)
    info = fun.debug_info
    assert pe.abstract_eval_fun(lambda x: [lax.sin(x)], VECTOR, debug_info=info) == [VECTOR]


@pytest.fixture
def program():
    return primax.make_jaxpr(lambda x, y: (lax.sin(x), lax.mul(y, TWO), lax.mul(x, y)))(TWO, TWO)


def test_dead_code_elimination(program):
    jaxpr, used = pe.dce_jaxpr(program, [True, False, False])
    assert used == [True, False] and len(jaxpr.eqns) == 1 and len(jaxpr.invars) == 1
    jaxpr, used = pe.dce_jaxpr(program, [True, False, False], instantiate=[False, True])
    assert used == [True, True] and len(jaxpr.invars) == 2
    assert pe.dce_jaxpr_consts(program, [False] * 3)[1:] == ([], [False, False])


def test_jaxpr_rearrangement(program):
    assert pe.move_binders_to_back(program, [True, False]).invars == program.invars[::-1]
    assert len(pe.prune_closed_jaxpr_outputs(program, [True, False, True]).outvars) == 2
    closed = primax.make_jaxpr(lambda x: lax.add(x, X))(X)
    assert len(pe.convert_constvars_jaxpr(closed).invars) == 2
    assert pe.lower_jaxpr(program, program.in_avals) is program


def test_jaxpr_partial_evaluation(program):
    known, unknown, out_unknowns, residuals = pe.partial_eval_jaxpr_nounits(
        program, [False, True], False
    )
    assert out_unknowns == [False, True, True] and residuals == [SCALAR]
    sine, *saved = core.eval_jaxpr(known, [], TWO)
    rest = core.eval_jaxpr(unknown, [], *saved, np.float32(5))
    assert [float(sine), *map(float, rest)] == [float(lax.sin(TWO)), 10, 10]
    *_, out_unknowns, residuals = pe.partial_eval_jaxpr_nounits(program, [False, True], True)
    assert out_unknowns == [True] * 3 and len(residuals) == 2


def test_dead_code_rules_of_calls():
    both = primax.make_jaxpr(lambda x, y: [lax.sin(x), lax.cos(y)])(TWO, TWO)
    prim = xcore.create_call_primitive("both")
    pe.dce_rules[prim] = pe.dce_jaxpr_call_rule
    jaxpr = primax.make_jaxpr(lambda x, y: prim.bind(x, y, call_jaxpr=both))(TWO, TWO)
    less, used = pe.dce_jaxpr(jaxpr, [True, False])
    assert used == [True, False]
    assert len(less.eqns[0].params["call_jaxpr"].eqns) == 1
    assert core.eval_jaxpr(less, [], TWO) == [lax.sin(TWO)]


def test_ignored_rules_warn():
    with pytest.warns(UserWarning, match="has no effect: partial evaluation"):
        pe.custom_partial_eval_rules[called_p] = lambda *args: None


# Wrapped functions


@lu.transformation
def scaled(by, *args):
    outs = yield tuple(lax.mul(a, by) for a in args), {}
    yield [outs]


@lu.transformation_with_aux
def scaled_with_aux(by, *args):
    outs = yield tuple(lax.mul(a, by) for a in args), {}
    yield outs, "aux"


@lu.transformation_with_aux2
def counted(inside, store, *args):
    store.store(len(args))
    return inside(*args)


def test_stacked_transformations():
    fun = lu.wrap_init(lambda x, y: lax.add(x, y))
    assert scaled(scaled(fun, 3.0), TWO).call_wrapped(1.0, TWO) == [[18]]
    assert hash(scaled(fun, 3.0)) == hash(scaled(fun, 3.0)) and scaled(fun, 3.0) == scaled(fun, 3.0)
    assert lu.wrap_init(lambda x, by: lax.mul(x, by), {"by": 3.0}).call_wrapped(TWO) == 6


def test_stores_accept_one_value():
    fun, aux = scaled_with_aux(lu.wrap_init(lambda x: x), 3.0)
    with pytest.raises(lu.StoreException, match="empty"):
        aux()
    assert (fun.call_wrapped(TWO), aux()) == (6, "aux")
    with pytest.raises(lu.StoreException, match="occupied"):
        fun.call_wrapped(TWO)
    _, other = counted(lu.wrap_init(lambda x: x))
    assert lu.merge_linear_aux(other, aux) == (False, "aux")
    with pytest.raises(lu.StoreException, match="neither"):
        lu.merge_linear_aux(other, other)


def test_generator_transformations_receive_exceptions():
    log = []

    @lu.transformation
    def watched(*args):
        try:
            outs = yield args, {}
        finally:
            log.append("left")
        yield outs

    def failing(x):
        raise KeyError(x)

    with pytest.raises(KeyError):
        watched(lu.wrap_init(failing)).call_wrapped(1)
    assert log == ["left"]


def test_cache_of_wrapped_functions():
    runs = []

    @lu.cache
    def answer(fun, *args):
        runs.append(args)
        return fun.call_wrapped(*args)

    def plus(x, y):
        return x + y

    (fun, aux), (again, aux_again) = (counted(lu.wrap_init(plus)) for _ in range(2))
    assert answer(fun, 1, 2) == answer(again, 1, 2) == 3
    assert len(runs) == 1 and aux() == aux_again() == 2
    assert answer(counted(lu.wrap_init(plus))[0], 1, 3) == 4 and len(runs) == 2
    answer.cache_clear()
    assert answer(counted(lu.wrap_init(plus))[0], 1, 2) == 3 and len(runs) == 3


# Arguments


def test_flattened_functions():
    args = ({"a": TWO}, TWO)
    leaves, tree = primax.tree.flatten((args, {"k": TWO}))
    fun = wrapped(lambda x, y, k: [x["a"], (y, k)], *args)
    flat, out_tree = api_util.flatten_fun(fun, tree)
    outs = flat.call_wrapped(*leaves)
    assert primax.tree.unflatten(out_tree(), outs) == [2, (2, 2)]


def test_argnums_partial_restores_static_arguments():
    fun = lu.wrap_init(lambda x, y, z: (x, y, z))
    some, dynamic = api_util.argnums_partial(fun, (0, -1), (1, 2, 3))
    assert dynamic == (1, 3) and some.call_wrapped(5, 6) == (5, 2, 6)
    with pytest.raises(ValueError, match=r"argument 1 .* must be hashable"):
        api_util.argnums_partial(fun, 0, (1, [2], 3))
    some, _ = api_util.argnums_partial(fun, 0, (1, [2], 3), require_static_args_hashable=False)
    assert some.call_wrapped(5) == (5, [2], 3)


def test_donation_and_axes():
    tree = primax.tree.structure(((1, (2, 3)), {"a": 1}))
    assert api_util.donation_vector((1,), ("a",), tree) == (False, True, True, True)
    assert api_util.rebase_donate_argnums((1, 2), (0,)) == (0, 1)
    with pytest.raises(ValueError, match="cannot intersect"):
        api_util.rebase_donate_argnums((1,), (1,))
    tree = primax.tree.structure(((1, 2), 3))
    assert api_util.flatten_axes("in_axes", tree, ((0, None), 1)) == [0, None, 1]
    assert api_util.flatten_axes("in_axes", tree, None) == [None] * 3
    with pytest.raises(ValueError, match="in_axes specification must be a tree prefix"):
        api_util.flatten_axes("in_axes", tree, (0, 1, 2))


def test_argument_names():
    def fun(x, *rest, k=1):
        return x

    info = api_util.debug_info("jit", fun, (TWO, {"q": TWO}, 3), {"k": (1, 2)}, static_argnums=[2])
    assert info.arg_names == ("x", "rest[0]['q']", "k[0]", "k[1]")
    assert info.name == "fun" and info.filename == __file__
    assert api_util.shaped_abstractify(primax.ShapeDtypeStruct((3,), np.float32)) == VECTOR


# Source locations and scopes


def test_named_scopes():
    with primax.named_scope("a"), places.extend_name_stack("b"):
        assert str(places.current_name_stack()) == "a/b"
        with places.transform_name_stack("jvp"), places.extend_name_stack("c"):
            assert str(places.current_name_stack()) == "a/b/jvp(c)"
            eqn = primax.make_jaxpr(lax.sin)(TWO).eqns[0]
        with places.reset_name_stack():
            assert len(places.current_name_stack()) == 0
    assert eqn.ctx == ()
    stack = places.new_name_stack("x").transform("y").extend("z")
    assert str(stack) == "x/y(z)" and stack == places.NameStack.of(stack.names())


def test_source_locations():
    info = places.current()
    assert places.summarize(info).startswith(__file__)
    assert places.summarize(places.new_source_info()) == ""
    with places.user_context(info.traceback):
        eqn = primax.make_jaxpr(lax.sin)(TWO).eqns[0]
    again = xcore.new_jaxpr_eqn(eqn.invars, eqn.outvars, lax.sin_p, eqn.params, eqn.effects, info)
    assert places.summarize(again.source_info) == places.summarize(info)
