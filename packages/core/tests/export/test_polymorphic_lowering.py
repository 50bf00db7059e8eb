"""Programs with symbolic shapes, lowered once and refined for several shapes."""

from __future__ import annotations

import numpy as np
import pytest
from polymorphic_programs import PROGRAMS, Program

import primax_core as px
from primax_core._api.symbolic_shapes import symbolic_args_specs
from primax_core._ir.jaxpr import Jaxpr
from primax_core._lower import compile as compiling, dynamic
from primax_core._lower.context import context, ir
from primax_core._lower.module import Lowered
from primax_core._runtime.dispatch import as_operand, device_of


def draw(program: Program, shapes) -> list[np.ndarray]:
    generator = np.random.default_rng(7)
    if program.dtype == "int32":
        return [generator.integers(-9, 9, s, np.int32) for s in shapes]
    return [
        generator.normal(size=s).astype(np.float32) if s else np.int32(1) for s in shapes
    ]


def traced(program: Program, arguments) -> Jaxpr:
    specs = symbolic_args_specs(tuple(arguments), program.specs, program.constraints)
    return px.make_jaxpr(program.fun)(*specs)


def run_refined(module: bytes, jaxpr: Jaxpr, arguments):
    """Compile and run a refined module of a static program."""
    arrays = [as_operand(a) for a in arguments]
    static = dynamic.refine(module, [a.aval for a in arrays])
    with context:
        lowered = Lowered(ir.Module.parse(static), None, [], [], frozenset({"lapack"}), "refined")
    specs = [a._spec for a in arrays]
    executable = compiling.load(lowered, jaxpr, specs, device_of(specs), False)
    return executable(arrays)


def as_numpy(values) -> list[np.ndarray]:
    return [np.asarray(v) for v in px.tree_util.tree_leaves(values)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program):
    first = draw(program, program.shapes[0])
    jaxpr = traced(program, first)
    module, plan = dynamic.lower_polymorphic(jaxpr, program.name, ["cpu"])
    for shapes in program.shapes:
        arguments = draw(program, shapes)
        static = px.make_jaxpr(program.fun)(*arguments)
        values = plan.values([a.shape for a in arguments])
        for v, w in zip(jaxpr.out_avals, static.out_avals, strict=True):
            found = [d if type(d) is int else d.evaluate(values) for d in v.shape]
            assert tuple(found) == w.shape and v.dtype == w.dtype
        wanted = as_numpy(px.jit(program.fun)(*arguments))
        for a, b in zip(run_refined(module, static, arguments), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5, atol=2e-5)
