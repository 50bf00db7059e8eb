"""Tests of interpreters written for the reference: traces, tracers and related utilities."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import numpy as np
import pytest

import primax
import primax.core as core
import primax.extend.core as xcore
from primax import errors, lax, sharding
from primax.extend.core import primitives

X = np.arange(1, 4, dtype=np.float32)
ONE = np.float32(1.5)


class Seen(core.Tracer):
    def __init__(self, trace, val):
        super().__init__(trace, primax.typeof(val))
        self.val = val


class Lazy(core.Tracer):
    """Tracer that computes its type on access, as in some libraries."""

    __slots__ = ("val",)

    def __init__(self, trace, val):
        self._trace = trace
        self.val = val

    @property
    def aval(self):
        return primax.typeof(self.val)


class Watching(core.Trace):
    def __init__(self, parent_trace, tracer, log):
        super().__init__()
        self.parent_trace = parent_trace
        self.tracer = tracer
        self.log = log

    def plain(self, x):
        return x.val if isinstance(x, self.tracer) and x._trace is self else x

    def wrapped(self, outs):
        return [self.tracer(self, o) for o in outs]

    def process_primitive(self, primitive, tracers, params):
        if primitive is primitives.jit_p:
            with xcore.set_current_trace(self):
                return xcore.jaxpr_as_fun(params["jaxpr"])(*tracers)
        self.log.append(primitive.name)
        values = [self.plain(t) for t in tracers]
        avals = [primax.typeof(v) for v in values]
        out = primitive.bind_with_trace(self.parent_trace, values, avals, params)
        return self.wrapped(out) if primitive.multiple_results else self.tracer(self, out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
        return self.rebound(primitive, tracers, params)

    def process_custom_vjp_call(
        self, primitive, fun, fwd, bwd, tracers, *, out_trees, symbolic_zeros
    ):
        params = {"subfuns": (fun, fwd, bwd), "symbolic_zeros": symbolic_zeros}
        return self.rebound(primitive, tracers, {**params, "out_trees": out_trees})

    def rebound(self, primitive, tracers, params):
        self.log.append(primitive.name)
        values = [self.plain(t) for t in tracers]
        avals = [primax.typeof(v) for v in values]
        return self.wrapped(primitive.bind_with_trace(self.parent_trace, values, avals, params))


def watched(fun, *args, tracer=Seen, log=None):
    with xcore.take_current_trace() as parent:
        trace = Watching(parent, tracer, [] if log is None else log)
        with xcore.set_current_trace(trace):
            outs = fun(*[tracer(trace, a) for a in args])
    return primax.tree.map(trace.plain, outs, is_leaf=lambda x: isinstance(x, core.Tracer))


@primax.custom_jvp
def squared(x):
    return lax.mul(x, x)


squared.defjvp(lambda primals, tangents: (squared(*primals), lax.neg(tangents[0])))


@primax.custom_vjp
def cubed(x):
    return lax.mul(lax.mul(x, x), x)


cubed.defvjp(lambda x: (lax.mul(lax.mul(x, x), x), x), lambda x, ct: (lax.neg(ct),))

FUNCTIONS = {
    "plain": lambda x: lax.add(lax.sin(x), lax.mul(x, 2.0)),
    "jit": primax.jit(lambda x: lax.exp(x)),
    "cond": lambda x: lax.cond(lax.gt(x, 0.0), lax.sin, lax.cos, x),
    "scan": lambda x: lax.scan(lambda c, _: (lax.sin(c), c), x, None, length=3)[0],
    "grad": primax.grad(lambda x: lax.sin(x)),
    "grad of custom_jvp": primax.grad(squared),
    "jvp": lambda x: primax.jvp(lax.sin, (x,), (x,))[1],
    "custom_jvp": squared,
    "custom_vjp": cubed,
    "inner": lambda x: watched(lambda y: lax.mul(y, x), x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("tracer", [Seen, Lazy])
def test_interpreter_matches_the_function(name, tracer):
    fun = FUNCTIONS[name]

    def run(x):
        return watched(fun, x, tracer=tracer)

    # An inner run closes over the outer tracer.
    np.testing.assert_allclose(run(ONE), fun(ONE), rtol=1e-6)
    np.testing.assert_allclose(primax.jit(run)(ONE), fun(ONE), rtol=1e-6)
    np.testing.assert_allclose(primax.grad(run)(ONE), primax.grad(fun)(ONE), rtol=1e-6)
    np.testing.assert_allclose(primax.vmap(run)(X), primax.vmap(fun)(X), rtol=1e-6)


def test_interpreter_processes_each_operation():
    log = []
    watched(FUNCTIONS["plain"], ONE, log=log)
    assert sorted(log) == ["add", "mul", "sin"]
    log.clear()
    watched(lambda x: cubed(squared(x)), ONE, log=log)
    assert log == ["custom_jvp_call", "custom_vjp_call"]


def test_vmap_inside_an_interpreter():
    log = []
    actual = watched(primax.vmap(lambda x: lax.sin(x)), X, log=log)
    np.testing.assert_allclose(actual, np.sin(X), rtol=1e-6)
    assert log == ["sin"]


def test_tracers_are_arrays():
    def check(x):
        assert isinstance(x, core.Tracer) and isinstance(x, primax.Array)
        assert isinstance(x._trace, core.Trace) and x.shape == () and x.dtype == np.float32
        with pytest.raises(primax.errors.TracerBoolConversionError):
            bool(x)
        return x

    assert watched(check, ONE) == ONE


def test_required_trace_methods():
    class Bare(core.Trace):
        pass

    trace = Bare()
    with xcore.set_current_trace(trace):
        with pytest.raises(NotImplementedError, match="Bare must define process_primitive"):
            lax.sin(ONE)
        with pytest.raises(NotImplementedError, match="must define process_custom_jvp_call"):
            squared(ONE)
        with pytest.raises(NotImplementedError, match="must define process_custom_vjp_call"):
            cubed(ONE)
    trace.invalidate()
    assert not trace.is_valid() and xcore.find_top_trace().is_valid()


# The current trace


def test_current_trace():
    assert isinstance(xcore.find_top_trace(), core.Trace)
    seen = []

    def fun(x):
        trace = xcore.find_top_trace([x])
        seen.append(isinstance(trace, core.Trace) and trace is x._trace)
        with xcore.take_current_trace() as taken:
            seen.append(taken is trace and not isinstance(lax.sin(ONE), core.Tracer))
        with core.eval_context():
            seen.append(not isinstance(lax.sin(ONE), core.Tracer))
        return x

    primax.jit(fun)(ONE)
    assert seen == [True] * 3
    assert not xcore.unsafe_am_i_under_a_jit_DO_NOT_USE()


def test_trace_state_queries():
    seen = []

    def fun(x):
        seen.append(
            (
                xcore.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                xcore.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                xcore.unsafe_get_axis_names_DO_NOT_USE(),
                xcore.nonempty_axis_env_DO_NOT_USE(),
            )
        )
        return x

    primax.jit(fun)(ONE)
    primax.vmap(fun, axis_name="i")(X)
    assert seen == [(True, False, [], False), (False, True, ["i"], True)]


def test_trace_states_compare_by_trace():
    outside = xcore.get_opaque_trace_state()
    assert outside == xcore.get_opaque_trace_state(convention="any")
    states, traces = [], []

    def fun(x):
        states.append(xcore.get_opaque_trace_state())
        traces.append(weakref.ref(x._trace))
        assert states[-1] == xcore.get_opaque_trace_state() != outside
        return x

    primax.jit(fun)(ONE)
    primax.grad(fun)(ONE)
    assert states[0] != states[1] and outside == xcore.get_opaque_trace_state()
    gc.collect()
    assert traces[0]() is None and states[0] != outside


def test_leaked_tracers_raise():
    tracers = []
    trace = Watching(xcore.find_top_trace(), Seen, [])
    with (
        pytest.raises(RuntimeError, match="Leaked trace Watching"),
        xcore.set_current_trace(trace, check_leaks=True),
    ):
        tracers.append(lax.sin(Seen(trace, ONE)))


# Operations defined as classes


def test_hiprim_operations():
    from primax.experimental import hijax

    vector = core.ShapedArray((3,), np.dtype("float32"))

    class Power(hijax.HiPrim):
        def __init__(self, n):
            self.in_avals, self.out_aval, self.params = (vector,), {"y": vector}, {"n": n}
            super().__init__()

        def expand(self, x):
            return {"y": lax.integer_pow(x, self.n)}

    class Ruled(Power):
        def vjp_fwd(self, nzs_in, x):
            return self(x), x

        def vjp_bwd_retval(self, res, ct):
            return (lax.neg(ct["y"]),)

        def batch(self, axis_data, args, dims):
            return {"y": lax.neg(self.expand(*args)["y"])}, {"y": dims[0]}

    def total(prim, x):
        return lax.reduce_sum(prim(x)["y"], (0,))

    power, ruled = Power(2), Ruled(2)
    assert power == Power(2) and hash(power) == hash(Power(2)) and power != Power(3)
    assert power(X)["y"].tolist() == primax.jit(power)(X)["y"].tolist() == [1, 4, 9]
    assert primax.grad(lambda x: total(power, x))(X).tolist() == [2, 4, 6]
    assert primax.grad(lambda x: total(ruled, x))(X).tolist() == [-1, -1, -1]
    rows = np.stack([X, X])
    assert primax.vmap(power)(rows)["y"].tolist() == [[1, 4, 9]] * 2
    assert primax.vmap(ruled)(rows)["y"].tolist() == [[-1, -4, -9]] * 2
    with pytest.raises(TypeError, match=r"Power\(n=2\) expects float32\[3\], got float32\[2\]"):
        power(X[:2])


@pytest.mark.parametrize("by", ["jvp", "lin"])
def test_derived_rules(by):
    from primax.experimental import hijax

    vector = core.ShapedArray((3,), np.dtype("float32"))

    class Base(hijax.HiPrim):
        in_avals, out_aval, params = (vector,), vector, {}

        def expand(self, x):
            return lax.sin(x)

    if by == "jvp":

        class Op(Base):
            def jvp(self, primals, tangents):
                return self(*primals), lax.mul(lax.cos(primals[0]), tangents[0])

            vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp
            lin, linearized = hijax.linearize_from_jvp
    else:

        class Op(Base):
            def lin(self, nzs_in, x):
                return lax.sin(x), lax.cos(x)

            def linearized(self, residuals, dot):
                return lax.mul(residuals, dot)

            jvp = hijax.jvp_from_lin
            vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin

    op = Op()
    out, residuals = op.vjp_fwd((True,), X)
    np.testing.assert_allclose(op.vjp_bwd_retval(residuals, X)[0], np.cos(X) * X, rtol=1e-5)
    np.testing.assert_allclose(primax.jvp(op, (X,), (X,))[1], np.cos(X) * X, rtol=1e-5)
    np.testing.assert_allclose(primax.vjp(op, X)[1](X)[0], np.cos(X) * X, rtol=1e-5)
    np.testing.assert_allclose(out, np.sin(X), rtol=1e-5)


def test_rules_of_both_modes():
    """Forward mode uses jvp, reverse mode the pair of rules for it."""
    from primax.experimental import hijax

    scalar = core.ShapedArray((), np.dtype("float32"))

    class Op(hijax.HiPrim):
        in_avals, out_aval, params = (scalar, scalar), {"y": scalar}, {}

        def expand(self, x, y):
            return {"y": lax.sin(x) * y}

        def jvp(self, primals, tangents):
            (x, y), (dx, dy) = primals, tangents
            return self(x, y), {"y": lax.cos(x) * dx * y + lax.sin(x) * dy}

        def vjp_fwd(self, nzs_in, x, y):
            seen.append(nzs_in)
            return self(x, y), (x, [y])

        def vjp_bwd_retval(self, residuals, ct):
            x, (y,) = residuals
            return 10 * lax.cos(x) * y * ct["y"], 10 * lax.sin(x) * ct["y"]

    seen = []
    f = lambda x, y: Op()(x, y)["y"]
    x, y = np.float32(2), np.float32(3)
    dx, dy = np.cos(x) * y, np.sin(x)
    close = partial(np.testing.assert_allclose, rtol=1e-5)
    close(primax.jvp(f, (x, y), (x, y))[1], dx * x + dy * y)
    assert seen == []
    close(primax.grad(f)(x, y), 10 * dx)
    close(primax.jit(primax.grad(f, (0, 1)))(x, y), [10 * dx, 10 * dy])
    assert seen == [(True, False), (True, True)]
    close(primax.linearize(f, x, y)[1](x, y), dx * x + dy * y)
    close(primax.linearize(lambda x: f(x, y), x)[1](x), dx * x)
    many = np.stack([x, x])
    close(primax.vmap(primax.grad(f), (0, None))(many, y), [10 * dx] * 2)
    steps = lambda x: lax.scan(lambda c, _: (f(c, y), None), x, None, length=2)[0]
    once = np.sin(x) * y
    close(primax.grad(steps)(x), 100 * dx * np.cos(once) * y)
    close(primax.jvp(primax.grad(f), (x, y), (x, 0 * y))[1], -10 * np.sin(x) * y * x)


def test_eager_operations_branch_on_values():
    from primax.experimental import hijax

    scalar = core.ShapedArray((), np.dtype("float32"))

    class Op(hijax.HiPrim):
        in_avals, params = (scalar,), {}

        def __init__(self, out=scalar):
            self.out_aval = out
            super().__init__()

        def expand(self, x):
            return lax.sin(x) if x > 0 else lax.cos(x)

    x = np.float32(2)
    np.testing.assert_allclose([Op()(x), Op()(-x)], [np.sin(x), np.cos(x)], rtol=1e-6)
    with pytest.raises(errors.TracerBoolConversionError):
        primax.jit(Op())(x)
    with pytest.raises(TypeError, match=r"gives float32\[\], but its out_aval is float32\[1\]"):
        Op(core.ShapedArray((1,), np.dtype("float32")))(x)


def test_placements_that_an_operation_declares():
    pytest.importorskip("primax_distributed")
    from primax.experimental import hijax

    class Op(hijax.HiPrim):
        params = {}

        def __init__(self, aval, out):
            self.in_avals, self.out_aval = (aval,), out
            super().__init__()

        def expand(self, x):
            double = lambda x: x * 2
            return primax.shard_map(double, out_specs=primax.P("x"))(x)

    mesh = sharding.AbstractMesh((4,), ("x",), axis_types=(sharding.AxisType.Explicit,))
    with sharding.use_abstract_mesh(mesh):
        divided = sharding.NamedSharding(mesh, primax.P("x"))
        x = primax.ShapeDtypeStruct((8,), np.float32, sharding=divided)
        for out in (primax.typeof(x), core.ShapedArray((8,), np.dtype("float32"))):
            op = Op(primax.typeof(x), out)
            total = lambda x, op=op: lax.reduce_sum(op(x), (0,))
            for f in (op, primax.jit(op), primax.grad(total)):
                assert primax.eval_shape(f, x).sharding == divided


def test_accumulators():
    from primax.experimental import hijax

    aval = primax.typeof(ONE)
    for accum in (hijax.ValAccum(aval), hijax.RefAccum(aval)):
        assert isinstance(accum.freeze(), hijax.Zero)
        accum.accum(hijax.Zero(aval))
        accum.accum(ONE)
        accum.accum(ONE)
        assert accum.freeze() == 3
    nothing = hijax.NullAccum(aval)
    nothing.accum(ONE)
    assert isinstance(nothing.freeze(), hijax.Zero)
    assert hijax.instantiate_zeros(hijax.Zero(aval)) == 0


# Clients, devices, private modules


def test_backends():
    from primax.experimental import topologies
    from primax.extend import backend

    assert backend.get_backend("cpu") is backend.backends()["cpu"]
    assert backend.get_default_device() in primax.devices()
    options = backend.get_compile_options(1, 1, [0], {"xla_cpu_enable_fast_math": "false"})
    assert options.num_partitions == 1
    cleared = []

    class Cache:
        def cache_clear(self):
            cleared.append(True)

    backend.register_backend_cache(Cache(), "a test")
    backend.clear_in_memory_compilation_cache()
    assert cleared
    assert topologies.get_attached_topology().devices == primax.devices()
    for unsupported in (
        backend.clear_backends,
        lambda: backend.register_backend_factory("mine", lambda: None),
        lambda: topologies.get_topology_desc("v5e:2x2"),
    ):
        with pytest.raises(NotImplementedError):
            unsupported()


def test_patched_compiler_forbids_compilation():
    from primax.as_jax._src import compiler

    def forbidding(backend, *args, **kwargs):
        raise PermissionError(backend.platform)

    original = compiler.backend_compile_and_load
    compiler.backend_compile_and_load = forbidding
    try:
        with pytest.raises(PermissionError, match="cpu"):
            primax.jit(lambda x: lax.sin(lax.cos(x)))(ONE)
    finally:
        compiler.backend_compile_and_load = original
    assert primax.jit(lambda x: lax.sin(lax.cos(x)))(ONE) == lax.sin(lax.cos(ONE))


def test_private_modules():
    from importlib import import_module

    def private(name):
        return import_module(f"primax.as_jax._src.{name}")

    assert private("core").Literal is xcore.Literal and private("core").Trace is core.Trace
    assert private("core").get_aval(ONE) == primax.typeof(ONE)
    assert private("pjit").jit_p is primitives.jit_p
    assert dict in private("tree_util")._registry and set not in private("tree_util")._registry
    assert private("xla_bridge")._backends.get("nothing") is None
    assert private("distributed").global_state.process_id == 0
    assert isinstance(lax.sin(ONE), private("array").ArrayImpl)
    assert private("dtypes").supports_inf(np.float32)
    assert not private("dtypes").supports_inf("float8_e4m3fn")
    assert private("util").split_list([1, 2, 3], [1]) == [[1], [2, 3]]
    private("dispatch").wait_for_tokens()


def test_hidden_frames():
    import sys

    from primax.as_jax._src import traceback_util

    frame = sys._getframe()
    assert traceback_util.include_frame(frame)
    traceback_util.register_exclusion(__file__)
    try:
        assert not traceback_util.include_frame(frame)
    finally:
        traceback_util._exclude_paths.remove(__file__)
    assert traceback_util.include_frame(frame)
