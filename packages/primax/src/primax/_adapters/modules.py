"""MLIR modules: lowering of jaxprs to functions and modules, and serialization of modules."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from primax_core.extend import Jaxpr, facade
from primax_core.extend.lowering import ir

from .ir_values import flatten_ir_values
from .lowering import (
    NO_OVERRIDES,
    LoweringParameters,
    ModuleContext,
    ShapePolyLoweringState,
    TokenSet,
)


class IrModule(Protocol):
    """A module of MLIR: jaxlib's ``ir.Module``."""

    @property
    def operation(self) -> Any:
        """The operation of the module."""

    @property
    def body(self) -> Any:
        """The block with its functions."""

    @property
    def context(self) -> Any:
        """The MLIR context that owns it."""


class LoweringResult(NamedTuple):
    """A jaxpr lowered to a module.

    Attributes:
      module: the MLIR module, whose function ``main`` is the jaxpr.
      keepalive: objects that must stay alive as long as the executable.
      host_callbacks: Python functions called by the module.
      shape_poly_state: its symbolic dimensions.
    """

    module: Any
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: ShapePolyLoweringState


def make_ir_context() -> Any:
    """Create an MLIR context with the required dialects."""
    return facade.make_context()


def module_to_string(module: IrModule, enable_debug_info: bool | None = None) -> str:
    """Print a module, with source locations on request."""
    return module.operation.get_asm(enable_debug_info=bool(enable_debug_info))


def module_to_bytecode(module: IrModule) -> bytes:
    """Serialize a module to MLIR bytecode, which is stable only within one version."""
    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()


def merge_mlir_modules(
    dst_module: IrModule, sym_name: str, src_module: IrModule, dst_symtab: Any = None
) -> str:
    """Copy a module's functions into another module; ``main`` becomes a private function.

    Args:
      sym_name: the requested name of ``main`` there.
      dst_symtab: the symbol table of the other module, if it exists already.

    Returns:
      The actual name of ``main``. Other functions are renamed where names collide.
    """
    context = dst_module.context
    source = src_module.operation.clone()
    if src_module.context != context:
        with context, ir.Location.unknown(context):
            source = ir.Module.parse(module_to_bytecode(src_module), context).operation
    table = ir.SymbolTable(dst_module.operation) if dst_symtab is None else dst_symtab
    taken = {_symbol(op) for op in dst_module.body.operations}
    ops = list(source.regions[0].blocks[0].operations)
    names = {_symbol(op) for op in ops}
    merged = sym_name
    for op in ops:
        old = _symbol(op)
        is_main = old == "main"
        new = _free(sym_name if is_main else old, taken, names - {old})
        taken.add(new)
        if new != old:
            ir.SymbolTable.replace_all_symbol_uses(old, new, source)
            ir.SymbolTable.set_symbol_name(op.operation, new)
        if is_main:
            merged = new
            ir.SymbolTable.set_visibility(op.operation, "private")
    for op in ops:
        table.insert(op.operation.clone(ip=ir.InsertionPoint(dst_module.body)))
    return merged


def _symbol(op: Any) -> str:
    return ir.StringAttr(op.operation.attributes["sym_name"]).value


def _free(name: str, taken: set[str], others: set[str]) -> str:
    free, n = name, 0
    while free in taken or free in others:
        free, n = f"{name}_{n}", n + 1
    return free


# Jaxprs


def jaxpr_subcomp(
    ctx: ModuleContext,
    jaxpr: Jaxpr,
    name_stack: Any,
    tokens: TokenSet,
    consts_for_constvars: Sequence[Any],
    *args: Any,
    dim_var_values: Sequence[Any] = (),
    const_lowering: Any = None,
    outer_traceback: Any = None,
) -> tuple[list[Any], TokenSet]:
    """Emit the operations of a jaxpr at the current insertion point.

    Args:
      consts_for_constvars: MLIR values of its constants.
      args: MLIR values of its arguments.
      tokens: input tokens of its ordered effects.

    Returns:
      MLIR values of its results, and the output tokens of its ordered effects.
    """
    has_consts = len(consts_for_constvars) == len(jaxpr.constvars)
    if has_consts and jaxpr.constvars:
        jaxpr = jaxpr.replace(constvars=[], consts=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    values = flatten_ir_values([*(consts_for_constvars if has_consts else ()), *args])
    if len(tokens):
        ctx.core.token = tokens.items()[-1][1]
    outs = facade.lower_body(ctx.core, jaxpr, values)
    return list(outs), TokenSet([(e, ctx.core.token) for e in tokens.effects()])


def lower_jaxpr_to_fun(
    ctx: ModuleContext,
    name: str,
    jaxpr: Jaxpr,
    effects: Sequence[Any] = (),
    *,
    num_const_args: int = 0,
    main_function: bool = False,
    in_avals: Sequence[Any] = (),
    out_avals: Sequence[Any] = (),
    **options: Any,
) -> Any:
    """Emit a jaxpr as a function of the module, once per jaxpr.

    If the jaxpr has ordered effects, the first parameter and the first result are a token. Options
    for shardings, layouts, aliases and names must not be set.

    Raises:
      NotImplementedError: for such an option.
    """
    _refuse(options, {"replicated_args", "use_sharding_annotations", "detached"})
    with facade.context, facade.unknown_location:
        ctx.core.private_function(_with_numpy_consts(jaxpr), name)
        function = list(ctx.core.functions.values())[-1]
        if main_function:
            function.attributes["sym_visibility"] = ir.StringAttr.get("public")
    return function


def lower_jaxpr_to_module(
    module_name: str,
    jaxpr: Jaxpr,
    *,
    platforms: Sequence[str],
    donated_args: Sequence[bool] = (),
    num_const_args: int = 0,
    in_avals: Sequence[Any] = (),
    out_avals: Sequence[Any] = (),
    ordered_effects: Sequence[Any] = (),
    backend: Any = None,
    axis_context: Any = None,
    num_partitions: int = 1,
    all_default_mem_kind: bool = True,
    lowering_parameters: LoweringParameters | None = None,
    **options: Any,
) -> LoweringResult:
    """Lower a jaxpr to its own module, for the first of ``platforms``.

    Options for shardings, layouts, aliases and names must not be set.

    Raises:
      NotImplementedError: for such an option, several partitions or several platforms.
    """
    _refuse(options, {"replicated_args"})
    if lowering_parameters is not None and lowering_parameters.override_lowering_rules:
        raise NotImplementedError(NO_OVERRIDES)
    if num_partitions != 1 or len(platforms) != 1:
        raise NotImplementedError(
            "lower_jaxpr_to_module supports one platform and one partition, got "
            f"{tuple(platforms)} and {num_partitions}"
        )
    lowered = facade.lower_module(
        _with_numpy_consts(jaxpr), module_name, platforms[0], keep_unused=True,
        donated=[i for i, donate in enumerate(donated_args) if donate],
    )  # fmt: skip
    with facade.context:
        lowered.module.operation.attributes["sym_name"] = ir.StringAttr.get(module_name)
    state = ShapePolyLoweringState((), tuple(platforms))
    return LoweringResult(lowered.module, lowered, list(lowered.callbacks), state)


def _with_numpy_consts(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with its constants as NumPy arrays, which are emitted into the module."""
    if not jaxpr.consts:
        return jaxpr
    return jaxpr.replace(consts=[np.asarray(c) for c in jaxpr.consts])


def _refuse(options: dict[str, Any], harmless: set[str]) -> None:
    for name, value in options.items():
        if name not in harmless and value is not None and value is not False:
            raise NotImplementedError(
                f"the option {name}={value!r} is for several devices or formats and is not "
                "supported here; use primax.jit(...).lower()"
            )
