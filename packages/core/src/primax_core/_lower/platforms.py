"""One module for several platforms, which receives the platform index at run time.

Its functions have the platform index as first argument. An operation is emitted once if all
platforms lower it alike. If their rules differ, or a rule reads the platform, it becomes a
``stablehlo.case`` on the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .._ir.avals import ShapedArray
from .._ir.dimensions.solving import Plan, plan_of
from .._ir.jaxpr import Jaxpr
from .._trace.reference_ops import references
from .context import bytecode, context, func, hlo, ir, type_of, unknown_location
from .liveness import aliases_of, has_symbolic_dims, kept_inputs, large_consts
from .module import (
    LoweringContext,
    dimensions_of_arguments,
    finish_shardings,
    lower_body,
    sharding_attribute,
)

if TYPE_CHECKING:
    from .shardings import ExecutableShardings


class _PlatformIndex:
    """Placeholder of the platform index among the constants of functions."""

    aval = ShapedArray((), np.dtype(np.int32))


PLATFORM_INDEX: Final = _PlatformIndex()


class PlatformsContext(LoweringContext):
    """Lowers for several platforms at once.

    Attributes:
      platforms: their names. ``platform`` is the first; reading it is recorded.
      single: a context for each platform, for the operations that are lowered differently.
    """

    def __init__(
        self, module: ir.Module, platforms: Sequence[str], num_partitions: int = 1,
        sharding: Any = None,
    ):  # fmt: skip
        self._was_read = False
        super().__init__(module, platforms[0], num_partitions, sharding)
        self.platforms = tuple(platforms)
        self.single = [LoweringContext(module, p, num_partitions, sharding) for p in platforms]
        for ctx in self.single:
            ctx.partitioned, ctx.inspections = self.partitioned, self.inspections
            ctx.names, ctx.callbacks, ctx.needs = self.names, self.callbacks, self.needs

    @property  # type: ignore[override]
    def platform(self) -> str:
        """The first platform; an operation lowered with it is not used for the others."""
        self._was_read = True
        return self._first

    @platform.setter
    def platform(self, name: str) -> None:
        self._first = name

    def rule(self, prim) -> Callable:
        """A rule that lowers a primitive for all platforms."""
        rule = self._rules.get(prim)
        if rule is None:
            rule = self._rules[prim] = _everywhere([c.rule(prim) for c in self.single])
        return rule

    def passed_consts(self, jaxpr: Jaxpr) -> dict[int, Any]:
        """The platform index, and the large constants of the jaxpr."""
        return {id(PLATFORM_INDEX): PLATFORM_INDEX, **large_consts(jaxpr)}

    def index(self) -> ir.Value:
        """The platform index in the current function."""
        return self.hoisted[id(PLATFORM_INDEX)]

    @contextmanager
    def recording_reads(self) -> Iterator[list[bool]]:
        """Context manager with a list, to which it appends whether the platform was read."""
        saved, self._was_read = self._was_read, False
        was_read: list[bool] = []
        try:
            yield was_read
        finally:
            was_read.append(self._was_read)
            self._was_read = saved


def _everywhere(rules: Sequence[Callable]) -> Callable:
    first = rules[0]
    alike = all(rule is first for rule in rules)

    def lower(ctx: PlatformsContext, *operands, **params):
        if alike:
            saved = ctx.in_avals, ctx.out_avals, ctx.eqn, dict(ctx.broadcasts)
            mark = hlo.create_token().owner
            with ctx.recording_reads() as was_read:
                out = first(ctx, *operands, **params)
            if not was_read[0]:
                mark.erase()
                return out
            _erase_from(mark)
            ctx.in_avals, ctx.out_avals, ctx.eqn, ctx.broadcasts = saved
        return _choice(ctx, rules, operands, params)

    return lower


def _erase_from(mark: ir.Operation) -> None:
    """Erase an operation and the following ones in its block."""
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
        single.hoisted, single.body, single.broadcasts = ctx.hoisted, ctx.body, {}
        single.symbolic = ctx.symbolic
        with ir.InsertionPoint(region.blocks.append()):
            out = rule(single, *operands, **params)
            hlo.return_(out if ctx.eqn.primitive.multiple_results else [out])
    outs = list(op.results)
    return outs if ctx.eqn.primitive.multiple_results else outs[0]


class Portable:
    """A module with embedded constants, and its metadata.

    Attributes:
      kept_args: indices of the arguments of ``main``.
      callbacks: the Python functions that it calls.
    """

    __slots__ = ("module", "kept_args", "callbacks")

    def __init__(self, module: ir.Module, kept_args: tuple[int, ...], callbacks: list[Callable]):
        self.module = module
        self.kept_args = kept_args
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
    shardings: ExecutableShardings | None = None,
) -> Portable:
    """The module of a jaxpr for some platforms.

    A jaxpr with symbolic dimensions has dynamic shapes, keeps all its arguments, and asserts the
    constraints on their shapes.

    Args:
      donated: arguments whose buffers results may use, if ``main`` is compiled directly.
      overrides: rules to use in place of the primitives' own.
      arg_names: names of the arguments in messages about shapes.
      shardings: those of the arguments and results, for several devices. Meshes stay in place of
        their names.
    """
    if jaxpr.effects and references.ops.loaded:
        jaxpr = references.ops.for_lowering(jaxpr)
    symbolic = has_symbolic_dims(jaxpr)
    used_inputs = None if keep_unused or symbolic else kept_inputs(jaxpr)
    used_inputs = list(range(len(jaxpr.invars))) if used_inputs is None else used_inputs
    with context, unknown_location:
        module = ir.Module.create()
        everywhere = None if shardings is None else shardings.everywhere
        count = 1 if everywhere is None else everywhere.num_devices
        describe_module(module, name, count)
        several = len(platforms) > 1
        ctx = (
            PlatformsContext(module, platforms, count, everywhere)
            if several
            else LoweringContext(module, platforms[0], count, everywhere)
        )
        for single in [ctx, *getattr(ctx, "single", ())]:
            single.portable = True
            single.in_avals = single.out_avals = single.eqn = None
            single._rules.update(overrides or {})
        ctx.names.add("main")
        inputs = [jaxpr.invars[i] for i in used_inputs]
        in_types = [type_of(v.aval) for v in inputs]
        if several:
            in_types.insert(0, type_of(PLATFORM_INDEX.aval))
        out_types = [type_of(v.aval) for v in jaxpr.outvars]
        main = func.FuncOp(
            "main", (in_types, out_types), ip=ir.InsertionPoint(module.body), visibility="public"
        )
        main.arg_attrs = ir.ArrayAttr.get(
            _argument_attributes(jaxpr, used_inputs, donated, several, shardings)
        )
        if shardings is not None:
            texts = [shardings.of_result(i) for i in range(len(jaxpr.outvars))]
            attributes = [ir.DictAttr.get(sharding_attribute(text)) for text in texts]
            main.result_attrs = ir.ArrayAttr.get(attributes)
        arguments = list(main.add_entry_block().arguments)
        with ir.InsertionPoint(main.entry_block):
            if several:
                ctx.hoisted = {id(PLATFORM_INDEX): arguments.pop(0)}
            values = dict(zip(inputs, arguments))
            names = None if arg_names is None else [arg_names[i] for i in used_inputs]
            with dimensions_of_arguments(ctx, jaxpr, arguments, symbolic, True, names):
                outs = lower_body(ctx, jaxpr, [values.get(v) for v in jaxpr.invars])
            func.ReturnOp(outs)
        finish_shardings(ctx, module)
    return Portable(module, tuple(used_inputs), ctx.callbacks)


def lower_polymorphic(
    jaxpr: Jaxpr, name: str, platforms: Sequence[str], *, arg_names: Sequence[str] | None = None
) -> tuple[bytes, Plan]:
    """A module (in MLIR's bytecode) for a jaxpr with symbolic shapes, and the plan that computes
    its dimension variables.

    ``main`` has the arguments of the jaxpr, after the platform index (an i32) if there are several
    platforms, and asserts the constraints on their shapes.

    Args:
      arg_names: names of the arguments in messages.

    Raises:
      UnsolvableError: if a dimension variable cannot be computed from the arguments' shapes.
      UnknownDimensionError: if the jaxpr uses a variable that is in no argument's shape.
    """
    portable = lower_for(jaxpr, name, platforms, keep_unused=True, arg_names=arg_names)
    return bytecode(portable.module), plan_of([a.shape for a in jaxpr.in_avals], arg_names)


def describe_module(module: ir.Module, name: str, count: int = 1) -> None:
    """Set the name of a module and its number of devices."""
    i32 = ir.IntegerType.get_signless(32)
    one, partitions = ir.IntegerAttr.get(i32, 1), ir.IntegerAttr.get(i32, count)
    sym = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "main"
    module.operation.attributes["sym_name"] = ir.StringAttr.get(f"jit_{sym}")
    module.operation.attributes["mhlo.num_partitions"] = partitions
    module.operation.attributes["mhlo.num_replicas"] = one


def _argument_attributes(
    jaxpr: Jaxpr, used_inputs, donated, several: bool, shardings: ExecutableShardings | None
) -> list[ir.Attribute]:
    if shardings is not None:
        # XLA would not report which buffers it uses.
        donated = ()
    texts = [None if shardings is None else shardings.of_argument(i) for i in used_inputs]
    attributes = [ir.DictAttr.get(sharding_attribute(text)) for text in texts]
    aliases = aliases_of(jaxpr, donated) if donated else {}
    for position, i in enumerate(used_inputs):
        if i in aliases:
            out = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), aliases[i])
            attributes[position] = ir.DictAttr.get({"tf.aliasing_output": out})
    if several:
        name = {"jax.global_constant": ir.StringAttr.get("_platform_index")}
        attributes.insert(0, ir.DictAttr.get(name))
    return attributes
