"""Source locations and names of operations in lowered and compiled modules."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import primax_core as px
from primax_core import extend, lax
from primax_core._lower import compile as compiling
from primax_core._runtime.disk import executables as disk
from primax_core._trace.staging import stage

F = np.float32
X = np.ones(3, F)


def line_of(fun, word):
    """The line of a function that contains a word."""
    code = fun.__code__
    with open(code.co_filename) as file:
        text = file.read().split("\n")
    return next(n for n in range(code.co_firstlineno + 1, len(text)) if word in text[n - 1])


def locations(text):
    """Lines of this file by the name of an operation, from a lowered module."""
    table = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.MULTILINE))

    def resolved(value):
        line = re.search(rf'"{re.escape(__file__)}":(\d+):', value)
        inner = re.search(r"#loc\d+", value)
        return int(line[1]) if line else resolved(table[inner[0]]) if inner else None

    return {
        value.split('"')[1]: resolved(value) for value in table.values() if value.startswith('"')
    }


def compiled_lines(text):
    """Lines of this file by ``op_name``, from optimized HLO."""
    if "source_line" in text:
        lines = re.findall(r'op_name="([^"]*)" source_file="([^"]*)" source_line=(\d+)', text)
        return {name: int(line) for name, file, line in lines if file == __file__}
    files = dict(re.findall(r'^(\d+) "(.*)"$', text.split("FunctionNames")[0], re.MULTILINE))
    assert __file__ in files.values()
    places = dict(re.findall(r"^(\d+) \{file_name_id=\d+ .*? line=(\d+) ", text, re.MULTILINE))
    frames = dict(re.findall(r"^(\d+) \{file_location_id=(\d+) ", text, re.MULTILINE))
    uses = re.findall(r'op_name="([^"]*)" stack_frame_id=(\d+)', text)
    return {name: int(places[frames[frame]]) for name, frame in uses}


@px.jit
def called(x):
    return lax.tan(x)


def program(x, y):
    with px.named_scope("scope"):
        z = lax.sin(x)
    z = lax.scan(lambda c, t: (lax.cosh(c) * t, c), lax.reduce_sum(z, (0,)), y)[0]
    z = lax.cond(z > 0, lambda u: lax.exp(u), lambda u: lax.log(u), z)
    return {"out": called(z), "more": [lax.reduce_max(x, (0,))]}


def test_names_and_lines_in_the_lowered_module():
    lowered = px.jit(program).lower(X, X)
    lines = locations(lowered.as_text(debug_info=True))
    for name, word in {
        "jit(program)/scope/sin": "lax.sin",
        "jit(program)/while": "lax.scan",
        "jit(program)/while/body/cosh": "lax.cosh",
        "jit(program)/cond": "lax.cond",
        "jit(program)/cond/branch_0_fun/log": "lax.log",
        "jit(program)/cond/branch_1_fun/exp": "lax.exp",
        "jit(program)/jit(called)": "called(z)",
        "jit(program)/reduce_max": "reduce_max",
    }.items():
        assert lines[name] == line_of(program, word), name
    assert lines["tan"] == line_of(called.__wrapped__, "lax.tan")
    assert "loc(" not in lowered.as_text()


def test_names_and_lines_in_the_executable(monkeypatch):
    monkeypatch.setattr(disk, "is_on", lambda devs: False)
    px.clear_caches()
    lines = compiled_lines(px.jit(program).lower(X, X).compile().as_text())
    assert lines["jit(program)/scope/sin"] == line_of(program, "lax.sin")
    assert lines["jit(program)/reduce_max"] == line_of(program, "reduce_max")
    inlined = "jit(program)/jit(called)/tan"
    assert lines[inlined] == line_of(called.__wrapped__, "lax.tan")


def test_names_and_lines_of_gradients():
    def loss(x):
        with px.named_scope("layer"):
            y = lax.tanh(x)
        return lax.reduce_sum(y, (0,))

    lines = locations(px.jit(px.grad(loss)).lower(X).as_text(debug_info=True))
    assert lines["jit(loss)/jvp(layer)/tanh"] == line_of(loss, "lax.tanh")
    assert lines["jit(loss)/transpose(jvp(layer))/mul"] == line_of(loss, "lax.tanh")


def test_names_of_arguments_and_results():
    lowered = px.jit(program).lower(X, y=X)
    text = lowered.as_text(debug_info=True)
    assert re.search(r'%arg0: tensor<3xf32> loc\("x"\), %arg1: tensor<3xf32> loc\("y"\)', text)
    infos = re.findall(r'jax.result_info = "([^"]*)"', lowered.as_text())
    assert infos == ["result['more'][0]", "result['out']"]
    assert 'op_name="x"' in lowered.compile().as_text()


def test_names_of_arguments_with_unused_ones_and_constants():
    big = px.device_put(np.ones(32, F))
    text = px.jit(lambda unused, d: lax.reduce_sum(big, (0,)) + d["a"]).lower(
        X, {"a": X}
    ).as_text(debug_info=True)  # fmt: skip
    arguments = text[text.index("@main(") :].split("->")[0]
    names = re.findall(r"%arg\d: (tensor<\w+>) loc\((\"[^\"]*\"|unknown)", arguments)
    assert names == [("tensor<32xf32>", "unknown"), ("tensor<3xf32>", "\"d['a']\"")]


def test_text_of_hlo_has_metadata_on_request():
    lowered = px.jit(program).lower(X, X)
    assert "op_name" not in lowered.as_text("hlo")
    assert 'op_name="jit(program)/scope/sin"' in lowered.as_text("hlo", debug_info=True)


def test_results_keep_their_other_attributes():
    def f(x):
        return px.device_put(x * 2, px.memory.Space.Host), x

    text = px.jit(f).lower(X).as_text()
    assert re.search(r'\{jax.result_info = "result\[0\]", .*mhlo.memory_kind = "pinned_host"', text)


def test_functions_of_the_library_have_no_lines():
    """Many lines share them."""
    jaxpr = stage(lambda x: [lax.sin(x)], [extend.typeof(X)])
    lowered = compiling.lower_module(jaxpr, "sin", "cpu")
    text = lowered.located().operation.get_asm(enable_debug_info=True)
    assert '"jit(sin)/sin"' in text and ".py" not in text


def test_operations_of_an_expansion_have_the_name_of_the_primitive():
    text = px.jit(lambda x: lax.digamma(x)).lower(X).as_text(debug_info=True)
    names = set(re.findall(r'"(jit\([^"]*)"', text))
    assert names == {"jit(<lambda>)", "jit(<lambda>)/digamma"}


# Caches


class Compilations:
    """Executables that XLA compiles, with the cache on disk off."""

    def __init__(self, monkeypatch):
        self.names = []
        original = compiling._compile_or_fetch

        def compile_or_fetch(lowered, *args):
            self.names.append(lowered.name)
            return original(lowered, *args)

        monkeypatch.setattr(compiling, "_compile_or_fetch", compile_or_fetch)
        monkeypatch.setattr(disk, "is_on", lambda devs: False)


def one(x):
    return lax.sin(lax.cos(x)) * 0.34375


def same():
    """Functions of other lines, with other names of arguments."""

    def one(argument):
        z = lax.cos(argument)
        return lax.sin(z) * 0.34375

    return one


def test_equal_programs_of_other_lines_share_an_executable(monkeypatch):
    px.clear_caches()
    compilations = Compilations(monkeypatch)
    results = [px.jit(one)(X), px.jit(same())(X)]
    assert compilations.names == ["one"]
    np.testing.assert_array_equal(*results)
    assert px.jit(one).lower(X).compile()(X).shape == (3,)
    lowered = px.jit(same()).lower(X)
    lowered.as_text(debug_info=True)
    lowered.compile()
    assert compilations.names == ["one"]


def test_an_option_makes_lines_part_of_the_key(monkeypatch):
    px.clear_caches()
    compilations = Compilations(monkeypatch)
    px.config.update("compilation_cache_include_metadata_in_key", True)
    try:
        px.jit(one)(X)
        px.jit(same())(X)
        px.jit(functools.partial(one))(X)
    finally:
        px.config.update("compilation_cache_include_metadata_in_key", False)
    assert compilations.names == ["one", "one"]


def test_scopes_are_part_of_the_key_and_transformations_are_not(monkeypatch):
    px.clear_caches()
    compilations = Compilations(monkeypatch)

    def scoped(x):
        with px.named_scope("s"):
            return one(x)

    for fun in (scoped, one):
        fun.__name__ = "one"
        px.jit(fun)(X)
    assert compilations.names == ["one", "one"]

    def batched(x):
        return px.vmap(one)(x)

    batched.__name__ = "one"
    px.jit(batched)(X)
    assert compilations.names == ["one", "one"]


# Errors

broken_p = extend.Primitive("broken")
broken_p.rule(extend.abstract)(lambda x: x)


@broken_p.rule(extend.lower)
def _lower_broken(ctx, x):
    raise ZeroDivisionError("no code")


def breaks(x):
    return lax.sin(broken_p.bind(x * 2))


def test_errors_of_lowering_rules_name_the_line():
    for fun in (breaks, lambda x: lax.fori_loop(0, 3, lambda i, c: breaks(c), x)):
        with pytest.raises(ZeroDivisionError) as caught:
            px.jit(fun)(1.0)
        (note,) = [n for n in caught.value.__notes__ if "lowering" in n]
        line = line_of(breaks, "broken_p")
        assert re.match(
            rf"The error occurred while lowering broken, traced on line {re.escape(__file__)}:"
            rf"{line}:\d+ \(breaks\)\.",
            note,
        )


unknown_p = extend.Primitive("unknown_call")
unknown_p.rule(extend.abstract)(lambda x: x)


@unknown_p.rule(extend.lower)
def _lower_unknown(ctx, x):
    from jaxlib.mlir import ir

    version = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4)
    target = ir.StringAttr.get("a_function_without_handler")
    return ir.Operation.create(
        "stablehlo.custom_call", [x.type], [x],
        {"call_target_name": target, "api_version": version},
    ).result  # fmt: skip


def calls(x):
    return unknown_p.bind(x) + 1


def test_errors_of_xla_name_the_function_and_the_line():
    with pytest.raises(px.errors.JaxRuntimeError, match="a_function_without_handler") as caught:
        px.jit(calls)(1.0)
    (note,) = [n for n in caught.value.__notes__ if "compiling" in n]
    start = calls.__code__.co_firstlineno
    assert note == (
        "The error occurred while compiling jit(calls), the function calls at "
        f"{__file__}:{start}.\n"
        f"'a_function_without_handler' is called on line {__file__}:{start + 1}."
    )
