"""The extension API: names, registration, lookup, fallbacks, jaxprs."""

from __future__ import annotations

import pydoc
import subprocess
import sys
import types
from operator import attrgetter

import numpy as np
import pytest

import primax_core
import primax_core.extend as extend
from primax_core import grad, jit, jvp, lax, linear_transpose, make_jaxpr, vmap
from primax_core._base import identity
from primax_core.extend import (
    DebugInfo,
    Eqn,
    Jaxpr,
    JaxprCheckError,
    Literal,
    MissingRule,
    Primitive,
    RuleKind,
    RuleState,
    ShapedArray,
    Trace,
    Var,
    abstract,
    batch,
    check_jaxpr,
    current_trace,
    eval_jaxpr,
    expand,
    expanded,
    interpret,
    jaxprs_in,
    jvp as jvp_kind,
    known_primitives,
    lower,
    map_jaxprs,
    set_trace,
    stage,
    transpose,
    walk,
)

VECTOR = ShapedArray((3,), np.dtype(np.float32))
X = np.arange(1.0, 4.0, dtype=np.float32)
NAME_OF_WHEEL = primax_core.__name__.replace("_core", "_interpreters")

# Taking a name away, or changing what one means, takes a new major version.
VERSION_1_0 = """
API_VERSION Array Axis DebugInfo DropVar Effect Eqn Jaxpr JaxprCheckError Linear Literal
MissingRule Operand Primitive RuleKind RuleState Sample ShapedArray Sharding ShortRoads Trace
Tracer UnsupportedRule Var Zero abstract add_tangents any_number as_operand b1 backward batch bf16
c64 cast check check_jaxpr chlo current_trace dce dce_jaxpr dtypes effects eval_jaxpr expand
expanded f16 f32 finished hide_defaults hlo i32 i8 inexact instantiate interpret ir is_linear
is_operand is_zero jaxprs_in jvp known_primitives library_function linearize lower map_programs
mlir move_axis process promoted provides_custom_calls register_internal_path register_method
register_value_type run same_rank samples save set_trace stage state transpose typeof u32 u8 walk
""".split()
ADDED_IN_1_1 = """
capture random_clone_p random_unwrap_p random_wrap_p summarize watch_programs
""".split()
ADDED_IN_1_2 = """
AbstractRef AccumEffect Check Cost ReadEffect RefEffect Run WriteEffect cost discharge
discharge_jaxpr error_checks faults run_state shaped taylor
""".split()
ADDED_IN_1_3 = """
BatchTrace JVPTrace JVPTracer JitTracer SingleDeviceSharding StagingTrace add_any_p
axes_in_scope backward_pass batch_jaxpr batch_of bind_directly clients compiling fold_traceback
guarded_compilation is_internal_code jvp_jaxpr jvp_of linearize_jaxpr lowering memory_kinds
portable register_cache started_clients unregister_internal_path
""".split()
ADDED_IN_1_4 = """
FastPath NamedEffect RuleResultError as_result bounded_cache close_over custom_jvp_call_p
custom_vjp_call_p custom_vmap_call_p evaluate_scalars impl invalid_result jit_p live_eqns locate
map_jaxprs nbytes one_call partial_eval place remat_p requires run_jaxprs staged summarize_function
total_bytes trace_rule transpose_direct transpose_jaxpr
""".split()
RENAMED_IN_1_4 = {
    "ShortRoads": "FastPath",
    "backward": "transpose_direct",
    "finished": "as_result",
    "map_programs": "map_jaxprs",
    "process": "trace_rule",
    "run": "impl",
    "save": "partial_eval",
}


ADDED_IN_1_5 = """
NodeSerialization devices extended_body node_serialization partition place reduce_scatter_p
register_node_serialization
""".split()

WITHDRAWN_IN_1_4 = ("compiling", "mlir", "portable", "shaped")
OF_INTERPRETERS = ("Check", "Cost", "Run", "cost", "error_checks", "faults", "taylor")
ALL = {*VERSION_1_0, *ADDED_IN_1_1, *ADDED_IN_1_2, *ADDED_IN_1_3, *ADDED_IN_1_4, *ADDED_IN_1_5}
CURRENT = ALL - {*RENAMED_IN_1_4, *WITHDRAWN_IN_1_4, *OF_INTERPRETERS}
MODULES = {
    "dimensions", "elementwise", "facade", "fast_path", "jaxprs", "lowering", "native",
    "placements", "portable_modules", "processes", "references", "runtime", "scalar_evaluation",
    "traces", "transforms", "versions",
}  # fmt: skip


def test_names_of_earlier_versions_are_found():
    assert extend.API_VERSION == (1, 5)
    assert [n for n in sorted(CURRENT) if not hasattr(extend, n)] == []


def test_names_that_were_added_are_listed():
    """A name that is added belongs into the list, with a new minor version."""
    names = {n for n in dir(extend) if not n.startswith("_")}
    assert names - MODULES == CURRENT - MODULES


@pytest.mark.parametrize("old, new", RENAMED_IN_1_4.items())
def test_former_names_warn_until_version_2(old, new):
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} since version 1.4") as w:
        assert getattr(extend, old) is getattr(extend, new)
    assert w[0].filename == __file__


@pytest.mark.parametrize("name", WITHDRAWN_IN_1_4)
def test_withdrawn_names_warn_until_version_2(name):
    with pytest.warns(DeprecationWarning, match=f"{name} is withdrawn in version 1.4") as w:
        assert getattr(extend, name) is not None
    assert w[0].filename == __file__


def test_functions_of_the_former_module_of_lowering_warn():
    with pytest.warns(DeprecationWarning, match=r"lowering\.lower_body is withdrawn"):
        assert callable(extend.lowering.lower_body)


def test_kinds_of_the_interpreters_are_found_in_their_wheel(monkeypatch):
    wheel = types.ModuleType(NAME_OF_WHEEL)
    wheel.taylor = RuleKind("taylor", "(primals, series, **params) -> (out, series_out)")
    monkeypatch.setitem(sys.modules, NAME_OF_WHEEL, wheel)
    with pytest.warns(DeprecationWarning, match=f"taylor moved to {NAME_OF_WHEEL} in version 1.4"):
        assert extend.taylor is wheel.taylor


@pytest.mark.parametrize("name", OF_INTERPRETERS)
def test_kinds_of_the_interpreters_name_a_missing_wheel(name, monkeypatch):
    monkeypatch.setitem(sys.modules, NAME_OF_WHEEL, None)
    pip = identity.how_to_get("interpreters")
    with pytest.raises(AttributeError, match=f"{NAME_OF_WHEEL} since version 1.4.*{pip}"):
        getattr(extend, name)


@pytest.mark.parametrize(
    "name",
    ["checkify", "explain", "insight", "jet", "profiler", "debug.breakpoint",
     "debug.visualize_sharding"],
)  # fmt: skip
def test_the_core_names_the_wheel_of_its_former_interpreters(name):
    command = identity.how_to_get("interpreters")
    with pytest.raises(AttributeError, match=f"it is in {NAME_OF_WHEEL}, which {command}"):
        attrgetter(name)(primax_core)


def test_importing_the_core_imports_no_module_of_the_extension_api():
    root = primax_core.__name__
    code = f"import sys, {root}; print([m for m in sys.modules if m.startswith('{root}.extend')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Registration


@pytest.mark.parametrize(
    "kind, rule, takes",
    [
        (jvp_kind, lambda primals: None, "1 argument"),
        (batch, lambda axis, args: None, "2 arguments"),
        (lower, lambda: None, "0 arguments"),
        (jvp_kind, lambda primals, tangents, more: None, "3 arguments"),
    ],
)
def test_rules_are_held_to_the_signature(kind, rule, takes):
    with pytest.raises(TypeError, match=r"rules are called as .* by position") as e:
        Primitive("p").rule(kind)(rule)
    assert kind.signature in str(e.value) and takes in str(e.value)
    assert "test_door.py:" in str(e.value)


@pytest.mark.parametrize(
    "kind, rule",
    [
        (jvp_kind, lambda primals, tangents, *, axis: None),
        (jvp_kind, lambda primals, tangents, axis=None: None),
        (abstract, lambda x, y, *rest, axis: None),
        (abstract, lambda **params: None),
        (batch, lambda *args, **params: None),
    ],
)
def test_rules_that_fit_are_taken(kind, rule):
    p = Primitive("p")
    assert p.rule(kind)(rule) is rule
    assert p.find(kind) is rule


def test_methods_and_callables_count_without_self():
    class Rules:
        def forward(self, primals, tangents):
            return None

        def __call__(self, x):
            return x

    p = Primitive("p")
    p.rule(jvp_kind)(Rules().forward)
    p.rule(abstract)(Rules())
    with pytest.raises(TypeError, match="must be callable, got 3"):
        p.rule(lower)(3)
    with pytest.raises(TypeError, match="expected a RuleKind, got 'jvp'"):
        p.rule("jvp")


def test_a_second_rule_needs_override():
    p = Primitive("p")
    p.rule(abstract)(lambda x: x)
    with pytest.raises(ValueError, match=r"already has a rule for abstract, from .*test_door\.py:"):
        p.rule(abstract)(lambda x: x)
    p.unsupported(batch, "examples")
    with pytest.raises(ValueError, match="declared not to have a rule for batch"):
        p.rule(batch)(lambda axis, args, dims: None)
    p.rule(batch, override=True)(lambda axis, args, dims: None)
    assert p.state_of(batch) is RuleState.PRESENT


def test_overriding_forgets_what_was_derived():
    p = Primitive("factor")
    p.rule(abstract)(lambda x: x)
    p.rule(lower)(lambda ctx, x: ctx.call(lambda x: lax.mul(x, 2.0), x))
    p.rule(jvp_kind)(lambda ps, ts: (p.bind(*ps), lax.mul(ts[0], 2.0)))
    f = jit(lambda x: p.bind(x))
    held = make_jaxpr(lambda x: lax.scan(lambda c, _: (p.bind(c), None), x, None, length=1)[0])(1.0)
    forward = lambda: jvp(lambda x: eval_jaxpr(held, [x])[0], (1.0,), (1.0,))[1]
    assert f(X).tolist() == [2, 4, 6] and p.bind(X).tolist() == [2, 4, 6]
    assert grad(p.bind)(1.0) == 2.0 and forward() == 2.0
    p.rule(lower, override=True)(lambda ctx, x: ctx.call(lambda x: lax.mul(x, 3.0), x))
    p.rule(jvp_kind, override=True)(lambda ps, ts: (p.bind(*ps), lax.mul(ts[0], 3.0)))
    assert f(X).tolist() == [3, 6, 9] and p.bind(X).tolist() == [3, 6, 9]
    assert grad(p.bind)(1.0) == 3.0 and forward() == 3.0


# Lookup


def test_the_error_of_a_missing_rule_says_how_to_write_it():
    p = Primitive("lonely")
    with pytest.raises(MissingRule) as e:
        p.bind(X)
    text = str(e.value)
    assert f"primitive lonely (defined in {__name__}) has no abstract rule, which tracing" in text
    assert "@lonely_p.rule(abstract)\n  def _abstract(*avals, **params): ..." in text
    assert "# returns aval" in text


def test_the_error_of_a_declared_absence_gives_the_reason():
    p = Primitive("p")
    p.rule(abstract)(lambda x: x)
    p.rule(lower)(lambda ctx, x: x)
    p.unsupported(batch, "it talks to the network")
    with pytest.raises(MissingRule, match="p does not support vmap: it talks to the network"):
        vmap(p.bind)(X)


def test_fallbacks_answer_for_what_is_missing_only():
    kind = RuleKind("cost", "(*avals, **params) -> int", lambda prim: lambda *avals, **_: 7)
    p = Primitive("p")
    assert p.state_of(kind) is RuleState.FALLBACK and p.require(kind)() == 7
    p.unsupported(kind, "no")
    assert p.state_of(kind) is RuleState.UNSUPPORTED and p.find(kind) is None
    p.rule(kind, override=True)(lambda *avals, **_: 1)
    assert p.state_of(kind) is RuleState.PRESENT and p.require(kind)() == 1


def test_platform_rules_go_before_the_general_one():
    p = Primitive("p")
    p.rule(abstract)(lambda x: x)
    p.rule(lower)(lambda ctx, x: ctx.call(lax.neg, x))
    assert p.bind(X).tolist() == [-1, -2, -3]
    p.rule(lower.on("cpu"))(lambda ctx, x: ctx.call(lax.exp, x))
    np.testing.assert_allclose(p.bind(X), np.exp(X), rtol=1e-6)


# Expansions


def expanding() -> Primitive:
    p = Primitive("hypotenuse")

    @p.rule(expand)
    def _expand(x, y, *, scale):
        total = lax.add(lax.square(x), lax.square(y))
        return lax.mul(lax.sqrt(total), lax.full_like(x, scale))

    return p


def test_an_expansion_gives_all_other_rules():
    p = expanding()
    f = lambda x, y: p.bind(x, y, scale=2.0)
    g = lambda x, y: 2 * np.sqrt(x * x + y * y)
    y = np.float32(2)
    np.testing.assert_allclose(f(X, X), g(X, X), rtol=1e-6)
    np.testing.assert_allclose(jit(f)(X, X), g(X, X), rtol=1e-6)
    np.testing.assert_allclose(vmap(f, (0, None))(X, y), g(X, y), rtol=1e-6)
    np.testing.assert_allclose(grad(f)(3.0, 4.0), 2 * 3 / 5, rtol=1e-6)
    np.testing.assert_allclose(grad(grad(f))(3.0, 4.0), 2 * 16 / 125, rtol=1e-5)
    assert {p.state_of(k) for k in (abstract, lower, jvp_kind, batch)} == {RuleState.FALLBACK}
    assert "hypotenuse[scale=2.0] a b" in str(make_jaxpr(f)(X, X))


def test_an_expansion_is_transposed():
    p = Primitive("weighted", multiple_results=True)
    p.rule(expand)(lambda x, w: [lax.mul(x, w), lax.neg(x)])
    (back,) = linear_transpose(lambda x: p.bind(x, X), X)([X, X])
    np.testing.assert_allclose(back, X * X - X)


def test_own_rules_go_before_the_expansion():
    p = expanding()
    p.rule(jvp_kind)(lambda ps, ts, **params: (p.bind(*ps, **params), lax.full_like(ps[0], 42.0)))
    assert jvp(lambda x: p.bind(x, 4.0, scale=1.0), (3.0,), (1.0,))[1] == 42.0


def test_calls_have_expansions_and_loops_have_none():
    program = make_jaxpr(jit(lambda x: lax.sin(x)))(X)
    (eqn,) = program.eqns
    inside = expanded(eqn.primitive, [VECTOR], eqn.params)
    assert [e.primitive for e in inside.eqns] == [lax.sin_p]
    assert expanded(lax.add_p, [VECTOR, VECTOR], {}) is None


# Programs


def test_programs_are_built_by_hand_and_checked():
    a, b, c = Var(VECTOR), Var(VECTOR), Var(VECTOR)
    half = Literal(np.float32(0.5), ShapedArray((), np.dtype(np.float32)))
    eqns = [Eqn(lax.mul_p, [a, half], [b], {}), Eqn(lax.sin_p, [b], [c], {"accuracy": None})]
    program = Jaxpr([], [], [a], [c], eqns, debug_info=DebugInfo("a test", "halved"))
    check_jaxpr(program)
    np.testing.assert_allclose(eval_jaxpr(program, [X])[0], np.sin(X / 2), rtol=1e-6)
    with pytest.raises(JaxprCheckError, match="not bound before"):
        check_jaxpr(Jaxpr([], [], [a], [c], eqns[1:]))
    wrong = eqns[0].replace(outvars=[Var(ShapedArray((4,), np.dtype(np.float32)))])
    with pytest.raises(JaxprCheckError, match="claims the type"):
        check_jaxpr(Jaxpr([], [], [a], wrong.outvars, [wrong]))


def test_walk_and_map_jaxprs_reach_into_loops():
    def doubled(v):
        return lax.scan(lambda c, _: (lax.exp(c), None), v, None, length=2)[0]

    program = stage(lambda x: [lax.cond(lax.eq(x.ndim, 1), doubled, lax.neg, x)], [VECTOR])
    names = [e.primitive.name for e in walk(program)]
    assert {"cond", "scan", "exp", "neg"} <= set(names)
    (eqn,) = (e for e in program.eqns if e.primitive is lax.cond_p)
    counted = []
    mapped = map_jaxprs(eqn, lambda j: counted.append(j) or j)
    assert len(counted) == len(jaxprs_in(eqn.params)) == 2
    assert mapped.params == eqn.params and mapped is not eqn


def test_interpret_runs_in_another_domain():
    program = stage(lambda x, y: [lax.mul(lax.add(x, y), 2.0), y], [VECTOR, VECTOR])
    seen = []

    def step(eqn, values):
        seen.append((eqn.primitive.name, values))
        return [f"{eqn.primitive.name}({', '.join(values)})"]

    outs = interpret(program, ["x", "y"], step, constant=lambda c: f"{float(c):g}")
    assert outs == ["mul(add(x, y), 2)", "y"]
    assert [name for name, _ in seen] == ["add", "mul"]
    with pytest.raises(ValueError, match="the jaxpr takes 2 arguments, got 1"):
        interpret(program, ["x"], step)


def test_a_trace_of_ones_own_interprets_while_python_runs():
    class Logging(Trace):
        __slots__ = ("names",)

        def __init__(self, parent):
            super().__init__(parent)
            self.names = []

        def process(self, prim, args, params):
            self.names.append(prim.name)
            with set_trace(self.parent):
                return prim.bind(*args, **params)

        def call(self, jaxpr, args, name=None):
            return eval_jaxpr(jaxpr, args)

    trace = Logging(current_trace())
    with set_trace(trace):
        out = lax.sin(lax.cos(X))
    assert trace.names == ["cos", "sin"]
    np.testing.assert_allclose(out, np.sin(np.cos(X)), rtol=1e-6)


def test_every_primitive_is_known_with_its_home():
    p = Primitive("here")
    assert p in known_primitives() and p.home == __name__
    assert lax.sin_p.home == "primax_core.lax.trigonometric"
    assert lax.exp_p.home == "primax_core.lax.exponential"


def test_parameters_must_be_hashable():
    p = Primitive("p")
    p.rule(abstract)(lambda x, *, axes: x)
    with pytest.raises(TypeError, match="parameters of primitive p must be hashable"):
        p.bind(X, axes=[0])
    p.unsupported(transpose, "nothing to transpose")
    with pytest.raises(TypeError, match="cannot be pickled"):
        __import__("pickle").dumps(p)


def test_help_of_a_rule_kind_shows_arguments_and_results():
    kinds = {k: v for k, v in vars(extend).items() if isinstance(v, extend.RuleKind)}
    assert len(kinds) >= 18
    for name, kind in kinds.items():
        text = pydoc.render_doc(kind, renderer=pydoc.plaintext)
        assert kind.doc and f"Rule kind {name}: {kind.signature}" in text
        assert f"Register a rule with @primitive.rule({name})." in text
    assert "tangents: one for each operand" in extend.jvp.__doc__
    assert extend.lower.on("cuda").doc == extend.lower.doc
    assert extend.RuleKind.__doc__.startswith("The set of rules of one interpreter.")
    flops = extend.RuleKind("flops", "() -> int", lambda prim: None, doc="A number.")
    assert "A number." in flops.__doc__ and "use the fallback, " in flops.__doc__
