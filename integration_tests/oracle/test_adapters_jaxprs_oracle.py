"""Jaxprs, traces and wrapped functions in the reference's convention match the reference.

Each case takes a library ``m`` with the modules that such code imports. The text of the result must
be equal.
"""

from __future__ import annotations

import types
import warnings

import jax
import jax.api_util
import jax.core
import jax.extend.core
import jax.extend.core.primitives
import jax.extend.linear_util
import jax.extend.random
import jax.extend.source_info_util
import jax.numpy
import numpy as np
import pytest
from jax.interpreters import partial_eval as jax_partial_eval

import primax
import primax.api_util
import primax.core
import primax.extend.core
import primax.extend.core.primitives
import primax.extend.linear_util
import primax.extend.random
import primax.extend.source_info_util
import primax.numpy
from primax.interpreters import partial_eval as primax_partial_eval


def _library(root, pe):
    return types.SimpleNamespace(
        jax=root, lax=root.lax, np=root.numpy, core=root.core, x=root.extend.core, pe=pe,
        lu=root.extend.linear_util, places=root.extend.source_info_util, au=root.api_util,
        p=root.extend.core.primitives, random=root.extend.random,
    )  # fmt: skip


THEIRS = _library(jax, jax_partial_eval)
OURS = _library(primax, primax_partial_eval)

ONE = np.float32(1.5)
X = np.arange(1, 4, dtype=np.float32)


def _plain(tree):
    return jax.tree.map(lambda x: np.round(np.asarray(x, np.float64), 5).tolist(), tree)


def _wrapped(m, fun, *args):
    return m.lu.wrap_init(fun, debug_info=m.au.debug_info("test", fun, args, {}))


def _program(m):
    def fun(x, y):
        return m.lax.sin(x) + 1, y * 2, x * y

    return m.jax.make_jaxpr(fun)(np.float32(1), np.float32(2))


# Interpreters


def inverse(m):
    registry = {m.lax.exp_p: m.np.log, m.lax.tanh_p: m.np.arctanh}

    def run(jaxpr, consts, *args):
        env = {}

        def read(v):
            return v.val if type(v) is m.x.Literal else env[v]

        env.update(zip(jaxpr.outvars, args))
        env.update(zip(jaxpr.constvars, consts))
        for eqn in jaxpr.eqns[::-1]:
            values = [read(v) for v in eqn.outvars]
            if eqn.primitive is m.p.jit_p:
                inner = eqn.params["jaxpr"]
                env.update(zip(eqn.invars, run(inner.jaxpr, inner.consts, *values)))
            else:
                env[eqn.invars[0]] = registry[eqn.primitive](*values)
        return [read(v) for v in jaxpr.invars]

    def fun(x):
        return m.np.exp(m.np.tanh(x))

    jaxpr = m.jax.make_jaxpr(fun)(1.0)
    return _plain(run(jaxpr.jaxpr, jaxpr.consts, fun(1.0)))


def evaluation(m):
    def fun(x):
        return m.np.exp(m.np.tanh(x)) * X + m.jax.jit(m.np.sin)(x)

    jaxpr = m.jax.make_jaxpr(fun)(X)
    return _plain(m.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.literals, X))


def constants(m):
    aval = m.core.ShapedArray((3,), np.float32)
    v, out = m.x.Var(aval), m.x.DropVar(aval)
    out = m.x.Var(aval)
    eqn = m.x.new_jaxpr_eqn([v, v], [out], m.lax.add_p, {}, m.x.no_effects)
    jaxpr = m.x.Jaxpr([v], [], [out], [eqn])
    closed = m.x.ClosedJaxpr(jaxpr, [X])
    actual = m.core.eval_jaxpr(jaxpr, [X])
    return [(len(j.constvars), len(j.invars), len(j.consts)) for j in (jaxpr, closed)], _plain(
        actual
    )


def refused(m):
    aval = m.core.ShapedArray((), np.float32)
    try:
        m.x.check_jaxpr(m.x.Jaxpr([], [], [m.x.Var(aval)], []))
    except m.x.JaxprTypeError:
        return "JaxprTypeError"


def types_of_values(m):
    aval = m.core.ShapedArray((3, 2), np.float32)
    token = m.lax.create_token()
    return (
        m.x.mapped_aval(3, 0, aval), m.x.unmapped_aval(3, 1, aval), m.x.mapped_aval(4, None, aval),
        isinstance(token, m.x.Token), isinstance(m.jax.typeof(token), m.x.AbstractToken),
        isinstance(aval, m.core.AbstractValue), m.x.valid_jaxtype("a"), m.x.valid_jaxtype(1),
        m.x.primal_dtype_to_tangent_dtype(np.dtype("int32")), m.x.concrete_or_error(int, 3.5),
        m.au.shaped_abstractify(1.0), m.au.shaped_abstractify(X),
    )  # fmt: skip


def states(m):
    outside = m.x.get_opaque_trace_state()
    seen = [outside == m.x.get_opaque_trace_state(convention="any")]

    def fun(x):
        inside = m.x.get_opaque_trace_state()
        seen.append((inside == outside, inside == m.x.get_opaque_trace_state()))
        seen.append(m.x.unsafe_am_i_under_a_jit_DO_NOT_USE())
        seen.append(m.x.unsafe_am_i_under_a_vmap_DO_NOT_USE())
        seen.append((m.x.unsafe_get_axis_names_DO_NOT_USE(), m.x.nonempty_axis_env_DO_NOT_USE()))
        return x

    m.jax.jit(fun)(ONE)
    m.jax.grad(fun)(ONE)
    m.jax.vmap(fun, axis_name="i")(X)
    return seen


def call_primitive(m):
    jaxpr = m.jax.make_jaxpr(lambda x: [x * 2.0])(ONE)
    prim = m.x.create_call_primitive("called")

    def call(x):
        return prim.bind(x, call_jaxpr=jaxpr, extra=3)[0]

    names = [e.primitive.name for e in m.jax.make_jaxpr(m.jax.vmap(call))(X).eqns]
    return names, _plain(
        (
            call(ONE), m.jax.jit(call)(ONE), m.jax.grad(call)(ONE), m.jax.vmap(call)(X),
            m.jax.linear_transpose(call, ONE)(ONE),
            m.jax.grad(m.jax.grad(lambda x: call(x) ** 3))(ONE),
        )
    )  # fmt: skip


def more_primitives(m):
    return _plain((m.p.add_jaxvals_p.bind(1.0, 2.0), m.p.one_minus_square_p.bind(0.5))), [
        bool(p.bind(-0.0, 0.0)) for p in (m.p.le_to_p, m.p.lt_to_p, m.p.eq_to_p)
    ]


# Wrapped functions and arguments


def transformations(m):
    @m.lu.transformation
    def scaled(by, *args):
        out = yield tuple(by * a for a in args), {}
        yield [out]

    @m.lu.transformation_with_aux
    def noted(by, *args):
        out = yield tuple(by * a for a in args), {}
        yield [out], "aux"

    @m.lu.transformation_with_aux2
    def counted(inside, store, *args):
        store.store(len(args))
        return inside(*args)

    def fun(x, y):
        return {"a": x + y}

    once, aux = noted(_wrapped(m, fun, 1.0, 2.0), 3.0)
    results = [scaled(_wrapped(m, fun, 1.0, 2.0), 3.0).call_wrapped(1.0, 2.0)]
    for attempt in (
        aux,
        lambda: once.call_wrapped(1.0, 2.0),
        aux,
        lambda: once.call_wrapped(1.0, 2.0),
    ):
        try:
            results.append(attempt())
        except m.lu.StoreException as e:
            results.append(str(e))
    _, other = counted(_wrapped(m, fun, 1.0, 2.0))
    return results, m.lu.merge_linear_aux(aux, other), m.lu.merge_linear_aux(other, aux)


def remembered(m):
    runs = []

    @m.lu.transformation_with_aux2
    def counted(inside, store, *args):
        store.store(len(args))
        return inside(*args)

    @m.lu.cache
    def answer(fun, *args):
        runs.append(args)
        return fun.call_wrapped(*args)

    base = _wrapped(m, lambda x, y: x + y, 1.0, 2.0)
    results = []
    for args in ((1.0, 2.0), (1.0, 2.0), (1.0, 3.0)):
        fun, aux = counted(base)
        results.append((answer(fun, *args), aux()))
    return results, len(runs)


def arguments(m):
    tree = m.jax.tree.structure
    nested = tree(((1, 2), 3))
    fun = m.lu.wrap_init(
        lambda x, y, z: (x, y, z), debug_info=m.au.debug_info("t", lambda x, y, z: 0, (1, 2, 3), {})
    )
    some, dynamic = m.au.argnums_partial(fun, (0, 2), (1.0, 2.0, 3.0))
    info = m.au.debug_info("t", lambda x, *a, k=1: 0, (1.0, {"q": 2.0}, 3.0), {"k": (1.0, 2.0)})
    return (
        m.au.donation_vector((1,), ("a",), tree(((1, (2, 3)), {"a": 1}))),
        m.au.donation_vector((1,), (), tree((1, (2, 3))), kws=False),
        m.au.rebase_donate_argnums((1, 2), (0,)), m.au.rebase_donate_argnums((3,), (0, 1)),
        m.au.flatten_axes("a", nested, ((0, None), 1)), m.au.flatten_axes("a", nested, (0, None)),
        m.au.flatten_axes("a", nested, None),
        m.au.flatten_axes("a", tree(((1, 2), {})), (0, 1), kws=True),
        dynamic, some.call_wrapped(5.0, 6.0), m.au.argnums_partial(fun, -1, (1.0, 2.0, 3.0))[1],
        info.arg_names,
    )  # fmt: skip


def leaves(m):
    fun = _wrapped(m, lambda x, y, k: {"a": x + y, "k": k}, 1.0, 2.0)
    flat, out = m.au.flatten_fun(fun, m.jax.tree.structure(((1.0, 2.0), {"k": 1})))
    return flat.call_wrapped(1.0, 2.0, 3.0), str(out())


# Partial evaluation


def dynamic(m):
    aval = m.core.ShapedArray((3,), np.float32)
    const = m.np.asarray(X)
    jaxpr, avals, consts = m.pe.trace_to_jaxpr_dynamic(
        _wrapped(m, lambda x: [m.lax.mul(x, const)], X), [aval]
    )
    return str(jaxpr), avals, len(consts), _plain(m.core.eval_jaxpr(jaxpr, consts, X))


def partly_known(m):
    def fun(x, y):
        return [m.lax.sin(x), m.lax.mul(y, ONE), m.lax.mul(m.lax.cos(x), y)]

    results = []
    for instantiate in (False, True):
        pvals = [
            m.pe.PartialVal.known(m.np.float32(0)),
            m.pe.PartialVal.unknown(m.core.ShapedArray((), np.float32)),
        ]
        wrapped = _wrapped(m, fun, 1.0, 2.0)
        jaxpr, outs, consts = m.pe.trace_to_jaxpr_nounits(wrapped, pvals, instantiate)
        results.append(([p.is_known() for p in outs], outs[1].get_aval(), tuple(outs[1])))
        results.append(_plain(m.core.eval_jaxpr(jaxpr, consts, ONE)))
    return results


def dead_code(m):
    jaxpr, used = _program(m), [True, False, False]
    return (
        [str(p) for p in m.pe.dce_jaxpr(jaxpr, used)],
        [str(p) for p in m.pe.dce_jaxpr(jaxpr, used, instantiate=[False, True])],
        [str(p) for p in m.pe.dce_jaxpr_consts(jaxpr, used)],
        str(m.pe.prune_closed_jaxpr_outputs(jaxpr, [True, False, True])),
        str(m.pe.move_binders_to_back(jaxpr, [True, False])),
    )


def split(m):
    return [
        [str(p) for p in m.pe.partial_eval_jaxpr_nounits(_program(m), [False, True], instantiate)]
        for instantiate in (False, True, [True, False, False])
    ]


# Scopes, keys


def scopes(m):
    results = []

    def note():
        results.append(str(m.places.current_name_stack()))

    with m.jax.named_scope("a"):
        note()
        with m.places.extend_name_stack("b"):
            note()
        with m.places.reset_name_stack():
            note()
        with m.places.transform_name_stack("jvp"), m.places.extend_name_stack("c"):
            note()
            results.append(m.places.current_name_stack())
    with m.places.set_name_stack(m.places.new_name_stack("q")):
        note()
    results.append(str(m.places.NameStack().extend("x").transform("y").extend("z").transform("w")))
    results.append(m.places.summarize(m.places.new_source_info()))
    return results


def keys(m):
    data = m.jax.random.key_data
    words = np.arange(5, dtype=np.uint32)
    return [
        np.asarray(k).tolist()
        for k in (
            data(m.random.random_seed(3, m.random.threefry_prng_impl)),
            data(m.random.seed_with_impl(m.random.rbg_prng_impl, 3)),
            data(m.random.random_seed(np.arange(2), m.random.threefry_prng_impl)),
            m.random.threefry_2x32(m.np.asarray([1, 2], np.uint32), words),
        )
    ]


# Traces


def _watched(m):
    class Seen(m.core.Tracer):
        def __init__(self, trace, val):
            super().__init__(trace, m.jax.typeof(val))
            self.val = val

    class Watching(m.core.Trace):
        def __init__(self, parent_trace):
            super().__init__()
            self.parent_trace = parent_trace

        def plain(self, x):
            return x.val if isinstance(x, Seen) else x

        def process_primitive(self, primitive, tracers, params):
            if primitive is m.p.jit_p:
                with m.x.set_current_trace(self):
                    return m.x.jaxpr_as_fun(params["jaxpr"])(*tracers)
            values = [self.plain(t) for t in tracers]
            avals = [m.jax.typeof(v) for v in values]
            out = primitive.bind_with_trace(self.parent_trace, values, avals, params)
            return [Seen(self, o) for o in out] if primitive.multiple_results else Seen(self, out)

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
            return self.rebound(primitive, tracers, params)

        def process_custom_vjp_call(
            self, primitive, fun, fwd, bwd, tracers, *, out_trees, symbolic_zeros
        ):
            params = {"subfuns": (fun, fwd, bwd), "symbolic_zeros": symbolic_zeros}
            return self.rebound(primitive, tracers, {**params, "out_trees": out_trees})

        def rebound(self, primitive, tracers, params):
            values = [self.plain(t) for t in tracers]
            avals = [m.jax.typeof(v) for v in values]
            out = primitive.bind_with_trace(self.parent_trace, values, avals, params)
            return [Seen(self, o) for o in out]

    def run(fun, *args):
        with m.x.take_current_trace() as parent:
            trace = Watching(parent)
            with m.x.set_current_trace(trace):
                outs = fun(*[Seen(trace, a) for a in args])
        return m.jax.tree.map(trace.plain, outs, is_leaf=lambda x: isinstance(x, Seen))

    return run


def interpreters(m):
    lax = m.lax
    squared = m.jax.custom_jvp(lambda x: lax.mul(x, x))
    squared.defjvp(lambda p, t: (squared(*p), t[0]))
    cubed = m.jax.custom_vjp(lambda x: lax.mul(x, lax.mul(x, x)))
    cubed.defvjp(lambda x: (lax.mul(x, lax.mul(x, x)), lax.sin(x)), lambda r, ct: (ct * r,))
    functions = [
        lambda x: m.np.sin(x) * 2 + x,
        lambda x: m.np.where(x > 1, x, -x),
        lambda x: lax.sin(squared(x)),
        lambda x: lax.sin(cubed(x)),
        m.jax.jit(lambda x: m.np.sin(x) * 2),
        m.jax.grad(lambda x: m.np.sin(x) * 2),
        m.jax.grad(lambda x: squared(x) * 2.0),
        m.jax.grad(lambda x: cubed(x) * 2.0),
        lambda x: m.jax.jvp(m.np.sin, (x,), (1.0,))[1],
        lambda x: lax.cond(x > 0, m.np.sin, m.np.cos, x),
        lambda x: lax.scan(lambda c, _: (m.np.sin(c), c), x, None, length=3)[0],
    ]
    run = _watched(m)
    return [
        _plain(
            (
                run(f, ONE), m.jax.jit(lambda x, f=f: run(f, x))(ONE),
                m.jax.grad(lambda x, f=f: run(f, x))(ONE), m.jax.vmap(lambda x, f=f: run(f, x))(X),
            )
        )
        for f in functions
    ]  # fmt: skip


CASES = (
    inverse, evaluation, constants, refused, types_of_values, states, call_primitive,
    more_primitives, transformations, remembered, arguments, leaves, dynamic, partly_known,
    dead_code, split, scopes, keys, interpreters,
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference asks for debug info everywhere
        theirs = case(THEIRS)
    assert repr(case(OURS)) == repr(theirs)
