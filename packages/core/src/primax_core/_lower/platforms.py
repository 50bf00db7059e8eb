"""One module for several platforms: it is told at run time on which of them it is.

Its functions take the platform's index before all else. An operation is written once where all
platforms lower it alike; where their rules differ, or a rule asks for the platform, it becomes a
``stablehlo.case`` on the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from .._ir.avals import ShapedArray
from .._ir.dimensions.solving import Plan, plan_of
from .._ir.jaxpr import Jaxpr
from .._trace.reference_ops import references
from .context import bytecode, context, func, hlo, ir, type_of, unknown_location
from .liveness import aliases_of, has_symbolic_dims, kept_inputs, large_consts
from .module import LoweringContext, dimensions_of_arguments, lower_body


class _PlatformIndex:
    """Stands among the constants that functions of a module pass on."""

    aval = ShapedArray((), np.dtype(np.int32))


PLATFORM_INDEX: Final = _PlatformIndex()


class PlatformsContext(LoweringContext):
    """Lowers for several platforms at once.

    Attributes:
      platforms: their names; ``platform`` is the first, and whether it was read is noted.
      single: a context for each platform, for what they do not have in common.
    """

    def __init__(self, module: ir.Module, platforms: Sequence[str], num_partitions: int = 1):
        self._asked = False
        super().__init__(module, platforms[0], num_partitions)
        self.platforms = tuple(platforms)
        self.single = [LoweringContext(module, p, num_partitions) for p in platforms]
        for ctx in self.single:
            ctx.names, ctx.callbacks, ctx.needs = self.names, self.callbacks, self.needs

    @property  # type: ignore[override]
    def platform(self) -> str:
        """The first of the platforms: what is lowered for it is not used for the others."""
        self._asked = True
        return self._first

    @platform.setter
    def platform(self, name: str) -> None:
        self._first = name

    def rule(self, prim) -> Callable:
        """A rule that lowers a primitive for all platforms."""
        found = self._rules.get(prim)
        if found is None:
            found = self._rules[prim] = _everywhere([c.rule(prim) for c in self.single])
        return found

    def passed_consts(self, jaxpr: Jaxpr) -> dict[int, Any]:
        """The platform's index, and the program's large constants."""
        return {id(PLATFORM_INDEX): PLATFORM_INDEX, **large_consts(jaxpr)}

    def index(self) -> ir.Value:
        """The platform's index in the function that is being written."""
        return self.hoisted[id(PLATFORM_INDEX)]

    @contextmanager
    def noting(self) -> Iterator[list[bool]]:
        """Says in a list whether a platform was asked for meanwhile."""
        saved, self._asked = self._asked, False
        said: list[bool] = []
        try:
            yield said
        finally:
            said.append(self._asked)
            self._asked = saved


def _everywhere(rules: Sequence[Callable]) -> Callable:
    first = rules[0]
    alike = all(rule is first for rule in rules)

    def lower(ctx: PlatformsContext, *operands, **params):
        if alike:
            saved = ctx.in_avals, ctx.out_avals, ctx.eqn, dict(ctx.broadcasts)
            mark = hlo.create_token().owner
            with ctx.noting() as said:
                out = first(ctx, *operands, **params)
            if not said[0]:
                mark.erase()
                return out
            _erase_from(mark)
            ctx.in_avals, ctx.out_avals, ctx.eqn, ctx.broadcasts = saved
        return _choice(ctx, rules, operands, params)

    return lower


def _erase_from(mark: ir.Operation) -> None:
    """Erase an operation and those that follow it in its block."""
    following: list[ir.Operation] = []
    for op in mark.operation.block.operations:
        if following or op.operation == mark.operation:
            following.append(op.operation)
    for op in reversed(following):
        op.erase()


def _choice(ctx: PlatformsContext, rules: Sequence[Callable], operands, params):
    types = [type_of(a) for a in ctx.out_avals]
    op = hlo.CaseOp(types, index=ctx.index(), num_branches=len(rules))
    for region, single, rule in zip(op.regions, ctx.single, rules):
        single.in_avals, single.out_avals, single.eqn = ctx.in_avals, ctx.out_avals, ctx.eqn
        single.hoisted, single.scope, single.broadcasts = ctx.hoisted, ctx.scope, {}
        single.symbolic = ctx.symbolic
        with ir.InsertionPoint(region.blocks.append()):
            out = rule(single, *operands, **params)
            hlo.return_(out if ctx.eqn.primitive.multiple_results else [out])
    outs = list(op.results)
    return outs if ctx.eqn.primitive.multiple_results else outs[0]


class Portable:
    """A module that holds all its constants, and what is to be known of it.

    Attributes:
      kept: indices of the arguments that ``main`` takes.
      callbacks: the Python functions that it calls.
    """

    __slots__ = ("module", "kept", "callbacks")

    def __init__(self, module: ir.Module, kept: tuple[int, ...], callbacks: list[Callable]):
        self.module = module
        self.kept = kept
        self.callbacks = callbacks


def lower_for(
    jaxpr: Jaxpr,
    name: str,
    platforms: Sequence[str],
    *,
    donated: Sequence[int] = (),
    keep_unused: bool = False,
    overrides: Mapping[Any, Callable] | None = None,
    arg_names: Sequence[str] | None = None,
) -> Portable:
    """The module of a program for some platforms.

    A program with symbolic dimensions gets dynamic shapes, takes all its arguments, and asserts
    what must hold of their shapes.

    Args:
      donated: arguments that results may take over, if ``main`` is compiled as it is.
      overrides: rules to use in place of the primitives' own.
      arg_names: what messages about shapes call the arguments.
    """
    if jaxpr.effects and references.ops.loaded:
        jaxpr = references.ops.for_lowering(jaxpr)
    symbolic = has_symbolic_dims(jaxpr)
    kept = None if keep_unused or symbolic else kept_inputs(jaxpr)
    kept = list(range(len(jaxpr.invars))) if kept is None else kept
    with context, unknown_location:
        module = ir.Module.create()
        describe_module(module, name)
        several = len(platforms) > 1
        ctx = (
            PlatformsContext(module, platforms)
            if several
            else LoweringContext(module, platforms[0])
        )
        for single in [ctx, *getattr(ctx, "single", ())]:
            single.in_avals = single.out_avals = single.eqn = None
            single._rules.update(overrides or {})
        ctx.names.add("main")
        inputs = [jaxpr.invars[i] for i in kept]
        in_types = [type_of(v.aval) for v in inputs]
        if several:
            in_types.insert(0, type_of(PLATFORM_INDEX.aval))
        out_types = [type_of(v.aval) for v in jaxpr.outvars]
        main = func.FuncOp(
            "main", (in_types, out_types), ip=ir.InsertionPoint(module.body), visibility="public"
        )
        main.arg_attrs = ir.ArrayAttr.get(_about_arguments(jaxpr, kept, donated, several))
        arguments = list(main.add_entry_block().arguments)
        with ir.InsertionPoint(main.entry_block):
            if several:
                ctx.hoisted = {id(PLATFORM_INDEX): arguments.pop(0)}
            given = dict(zip(inputs, arguments))
            names = None if arg_names is None else [arg_names[i] for i in kept]
            with dimensions_of_arguments(ctx, jaxpr, arguments, symbolic, True, names):
                outs = lower_body(ctx, jaxpr, [given.get(v) for v in jaxpr.invars])
            func.ReturnOp(outs)
    return Portable(module, tuple(kept), ctx.callbacks)


def lower_polymorphic(
    jaxpr: Jaxpr, name: str, platforms: Sequence[str], *, arg_names: Sequence[str] | None = None
) -> tuple[bytes, Plan]:
    """A module (in MLIR's bytecode) for arguments of all shapes that the program's symbolic shapes
    stand for, and how its dimension variables follow from them.

    ``main`` takes the arguments of the program, after the index of the platform (an i32) where
    there are several, and asserts what must hold of their shapes.

    Args:
      arg_names: what messages call the arguments.

    Raises:
      UnsolvableError: if a dimension variable does not follow from the arguments' shapes.
      UnknownDimensionError: if the program uses a variable that no argument's shape has.
    """
    portable = lower_for(jaxpr, name, platforms, keep_unused=True, arg_names=arg_names)
    return bytecode(portable.module), plan_of([a.shape for a in jaxpr.in_avals], arg_names)


def describe_module(module: ir.Module, name: str) -> None:
    """Give a module its name and say that it is for one device."""
    one = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
    sym = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "main"
    module.operation.attributes["sym_name"] = ir.StringAttr.get(f"jit_{sym}")
    module.operation.attributes["mhlo.num_partitions"] = one
    module.operation.attributes["mhlo.num_replicas"] = one


def _about_arguments(jaxpr: Jaxpr, kept, donated, several: bool) -> list[ir.Attribute]:
    found = [ir.DictAttr.get({}) for _ in kept]
    aliases = aliases_of(jaxpr, donated) if donated else {}
    for position, i in enumerate(kept):
        if i in aliases:
            out = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), aliases[i])
            found[position] = ir.DictAttr.get({"tf.aliasing_output": out})
    if several:
        name = {"jax.global_constant": ir.StringAttr.get("_platform_index")}
        found.insert(0, ir.DictAttr.get(name))
    return found
