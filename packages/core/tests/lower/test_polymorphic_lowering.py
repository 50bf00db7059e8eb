"""Jaxprs with symbolic shapes, lowered once and refined for several shapes."""

from __future__ import annotations

import numpy as np
import pytest
from polymorphic_programs import PROGRAMS, Program

import primax_core as px
from primax_core import lax
from primax_core._api.symbolic_shapes import symbolic_args_specs
from primax_core._ir.avals import ShapedArray
from primax_core._ir.jaxpr import Jaxpr
from primax_core._lower import compile as compiling, platforms as lowering_platforms, static_shapes
from primax_core._lower.context import context, ir
from primax_core._lower.module import LoweredModule
from primax_core._runtime.dispatch import as_operand, device_of


def draw(program: Program, shapes) -> list[np.ndarray]:
    generator = np.random.default_rng(7)
    if program.dtype == "int32":
        return [generator.integers(-9, 9, s, np.int32) for s in shapes]
    return [generator.normal(size=s).astype(np.float32) if s else np.int32(1) for s in shapes]


def traced(program: Program, arguments) -> Jaxpr:
    specs = symbolic_args_specs(tuple(arguments), program.specs, program.constraints)
    return px.make_jaxpr(program.fun)(*specs)


def run_refined(module: bytes, jaxpr: Jaxpr, arguments):
    """Compile and run a refined module."""
    arrays = [as_operand(a) for a in arguments]
    static = static_shapes.refine(module, [a.aval for a in arrays])
    with context:
        lowered = LoweredModule(
            ir.Module.parse(static), None, [], [], frozenset({"lapack"}), "refined", None, "cpu"
        )
    specs = [a._spec for a in arrays]
    executable = compiling.load(lowered, jaxpr, specs, device_of(specs), False)
    return executable(arrays)


def as_numpy(values) -> list[np.ndarray]:
    return [np.asarray(v) for v in px.tree_util.tree_leaves(values)]


@pytest.mark.rotate()
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program):
    first = draw(program, program.shapes[0])
    jaxpr = traced(program, first)
    module, plan = lowering_platforms.lower_polymorphic(jaxpr, program.name, ["cpu"])
    for shapes in program.shapes:
        arguments = draw(program, shapes)
        static = px.make_jaxpr(program.fun)(*arguments)
        values = plan.values([a.shape for a in arguments])
        for v, w in zip(jaxpr.out_avals, static.out_avals, strict=True):
            sizes = [d if type(d) is int else d.evaluate(values) for d in v.shape]
            assert tuple(sizes) == w.shape and v.dtype == w.dtype
        expected = as_numpy(px.jit(program.fun)(*arguments))
        for a, b in zip(run_refined(module, static, arguments), expected, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5, atol=2e-5)


def module_of(fun, specs, *shapes, constraints=(), platforms=("cpu",)):
    structs = tuple(px.ShapeDtypeStruct(s, np.float32) for s in shapes)
    jaxpr = px.make_jaxpr(fun)(*symbolic_args_specs(structs, specs, constraints))
    return lowering_platforms.lower_polymorphic(jaxpr, "f", platforms)[0]


def avals(*shapes, dtype=np.float32):
    return [ShapedArray(s, dtype) for s in shapes]


ASSERTED = [
    ("2*a", (), (3,), "leaves a remainder of 1"),
    ("a", ("a >= 8",), (4,), "constraint a >= 8. Expected 'a - 8' >= 0, found -4"),
    ("a", ("mod(a, 2) == 0",), (7,), "constraint mod(a, 2) == 0"),
    ("a", (), (0,), "Expected value >= 1 for dimension variable 'a', found 0"),
    ("a - 1", (), (0,), ""),
]


@pytest.mark.parametrize("spec, constraints, shape, text", ASSERTED)
def test_module_asserts_its_shapes(spec, constraints, shape, text):
    module = module_of(lambda x: lax.reduce_sum(x, (0,)), spec, (1,), constraints=constraints)
    if not text:
        assert static_shapes.refine(module, avals(shape))
        return
    with pytest.raises(static_shapes.RefinementError) as caught:
        static_shapes.refine(module, avals(shape))
    assert text in str(caught.value)


def test_refinement_refuses_other_arguments():
    module = module_of(lambda x, y: x + y, "a, 3", (1, 3), (1, 3))
    for in_avals, text in (
        (avals((2, 3)), "takes 2 arguments, not 1"),
        (avals((2, 3), (2, 4)), "argument 1 of the module has type tensor<\\?x3xf32>"),
        (avals((2, 3), (2, 3, 1)), "argument 1"),
        (avals((2, 3), (2, 3), dtype=np.int32), "argument 0"),
        (avals((2, 3), (4, 3)), "cannot be computed for arguments of types f32\\[2,3\\], f32"),
    ):
        with pytest.raises(static_shapes.RefinementError, match=text):
            static_shapes.refine(module, in_avals)
    with pytest.raises(static_shapes.RefinementError, match="cannot be read"):
        static_shapes.refine(b"ML\xefR nothing", avals((2, 3)))


def test_several_platforms():
    """One module for several platforms, whose index becomes a constant."""
    module = module_of(lambda x: lax.sort(x * x.shape[0]), "a", (1,), platforms=("cpu", "cuda"))
    with context:
        text = str(ir.Module.parse(module))
    assert "@main(%arg0: tensor<i32>" in text and "stablehlo.case" in text
    x = np.array([3.0, 1.0, 2.0], np.float32)
    static = static_shapes.refine(module, avals((3,)), platform=0)
    with context:
        lowered = LoweredModule(
            ir.Module.parse(static), None, [], [], frozenset(), "refined", None, "cpu"
        )
    array = as_operand(x)
    jaxpr = px.make_jaxpr(lambda v: v)(x)
    specs = [array._spec]
    (out,) = compiling.load(lowered, jaxpr, specs, device_of(specs), False)([array])
    assert np.asarray(out).tolist() == [3.0, 6.0, 9.0]


def test_constants_are_in_the_module():
    table = np.arange(40, dtype=np.float32)
    module = module_of(lambda x: x + lax.slice(table, (0,), (1,)), "a", (1,))
    assert static_shapes.refine(module, avals((3,)))


def test_ffts_of_symbolic_lengths_raise():
    with pytest.raises(NotImplementedError, match="lengths as constants"):
        module_of(lambda x: lax.fft(lax.complex(x, x), "fft", x.shape), "a", (1,))


def test_static_modules_have_no_dynamic_operations():
    """A jaxpr without symbolic dimensions is lowered without dynamic operations."""
    text = px.jit(_table[0].fun).lower(np.ones((2, 3), np.float32)).as_text()
    assert "dynamic_" not in text and "?" not in text


_table = [p for p in PROGRAMS if p.name == "softmax"]
