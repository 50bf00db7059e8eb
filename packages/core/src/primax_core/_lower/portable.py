"""Portable modules: bytes for earlier and later versions of XLA, and checks of their contents.

The bytes are a StableHLO portable artifact, written for the version of StableHLO of twelve weeks
before. A reader may be that much older than the writer (every supported jaxlib reads the artifacts
of the newest one), and StableHLO guarantees compatibility for years to newer readers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, stablehlo

from .._base.errors import InvalidArtifactError
from .._runtime import lapack_targets as _provides_them  # noqa: F401
from .._runtime.custom_calls import is_provided
from .._runtime.jaxlib_versions import (
    JaxRuntimeError,
    deserialize_portable_artifact as deserialize_portable_artifact,
    hlo_to_stablehlo as hlo_to_stablehlo,
    refine_polymorphic_shapes as refine_polymorphic_shapes,
    serialize_portable_artifact as serialize_portable_artifact,
)
from . import solver_calls
from .context import bytecode as bytecode, context, sdy, type_of, unknown_location

_WINDOWS: Final = ("WEEK_12", "WEEK_4", "NONE")


def to_bytes(module: ir.Module, shardings: bool = False) -> bytes:
    """The portable bytes of a module, for the oldest version in the window that supports it.

    Args:
      shardings: it contains operations and attributes of Shardy, which are written as they are.
    """
    problem: Exception | None = None
    data = bytecode(module)  # jaxlib would change a module object
    for window in _WINDOWS:
        requirement = getattr(stablehlo.StablehloCompatibilityRequirement, window)
        version = stablehlo.get_version_from_compatibility_requirement(requirement)
        try:
            # jaxlib's function, not StableHLO's of the same name: it supports CHLO.
            return serialize_portable_artifact(data, version, shardings)
        except JaxRuntimeError as e:
            problem = e
    raise ValueError(f"the module cannot be written as portable StableHLO: {problem}") from problem


def from_bytes(data: bytes) -> ir.Module:
    """The module in portable bytes.

    MLIR's reader ends the process on some damaged inputs: `untrusted` checks bytes of unknown
    origin first.

    Raises:
      InvalidArtifactError: if they do not contain a well-formed module.
    """
    if b"sdy" in data:
        sdy()  # registers the dialect
    with unknown_location, _diagnostics() as messages:
        try:
            module = stablehlo.deserialize_portable_artifact(context, bytes(data))
            well_formed = module.operation.verify()
        except Exception as e:
            raise InvalidArtifactError(
                f"the artifact's module cannot be read: {'; '.join(messages[:3]) or e}"
            ) from None
    if not well_formed:
        raise InvalidArtifactError(f"the artifact's module is malformed: {'; '.join(messages[:3])}")
    return module


@contextmanager
def _diagnostics() -> Iterator[list[str]]:
    """Context manager that collects MLIR's diagnostics."""
    messages: list[str] = []

    def note(diagnostic: Any) -> bool:
        try:
            messages.append(str(diagnostic.message))
        except Exception:  # not valid text, and an error here would end the process
            messages.append("a name in it is not valid text")
        return True

    with context:
        handler = context.attach_diagnostic_handler(note)
        try:
            yield messages
        finally:
            handler.detach()


def as_text(data: bytes) -> str:
    """The text of a module."""
    return str(from_bytes(data))


# Native functions in modules

# XLA's own targets, with a stable meaning. Not those of partitioned modules, which abort if an
# operand is missing: artifacts are for one device.
_STABLE: Final = frozenset((
    "ApproxTopK", "LayoutConstraint", "PartialReduce", "Sharding",
    "annotate_device_placement", "shape_assertion", "stablehlo.dynamic_approx_top_k",
    "stablehlo.dynamic_reduce_window", "stablehlo.dynamic_rng_bit_generator",
    "stablehlo.dynamic_top_k", "dce_sink",
))  # fmt: skip
# Their numbers index a table of Python functions, which is not part of a module.
_CALLBACKS: Final = re.compile(
    r"xla_(ffi_)?(partitioned_)?(python_)?(cpu|gpu)?_?(python_)?.*callback.*"
)


def is_stable(target: str) -> bool:
    """Return True if a native function's name and meaning are stable between versions."""
    return target in _STABLE or solver_calls.is_known(target)


def is_callback(target: str) -> bool:
    """Return True if a custom call calls Python."""
    return _CALLBACKS.fullmatch(target) is not None


def needs_of(targets: Collection[str]) -> set[str]:
    """Names of the native functions to register, see ``_runtime.custom_calls``."""
    needs = {t for t in targets if is_provided(t)}
    return needs | {"lapack"} if any(map(solver_calls.runs_on_cpus, targets)) else needs


def targets_of(module: ir.Module) -> dict[str, str]:
    """The native functions that a module calls, each with the text of one call."""
    targets: dict[str, str] = {}
    # Not with `walk`: an error in its callback, such as for a name that is not valid text, ends the
    # process.
    waiting = [module.operation]
    while waiting:
        for region in waiting.pop().regions:
            for block in region.blocks:
                for op in block.operations:
                    operation = op.operation
                    if operation.name == "stablehlo.custom_call":
                        target = ir.StringAttr(operation.attributes["call_target_name"]).value
                        if target not in targets:
                            targets[target] = str(operation)
                    if len(operation.regions):
                        waiting.append(operation)
    return targets


def refused_calls(module: ir.Module, allowed: Collection[str]) -> dict[str, str]:
    """The calls of native functions that are neither stable nor allowed, as :func:`targets_of`."""
    return {
        target: text
        for target, text in targets_of(module).items()
        if is_callback(target) or not (target in allowed or is_stable(target))
    }


def main_of(module: ir.Module) -> Any:
    """The ``main`` function of a module.

    Raises:
      InvalidArtifactError: if there is none.
    """
    for op in module.body.operations:
        if isinstance(op, func.FuncOp) and op.name.value == "main" and not op.is_external:
            return op
    raise InvalidArtifactError("the artifact's module has no function main")


def check_signature(module: ir.Module, in_avals: Sequence, out_avals: Sequence) -> None:
    """Raise an error if ``main`` of a module does not have these arguments and results."""
    main = main_of(module)
    for what, types, avals in (
        ("arguments", main.type.inputs, in_avals),
        ("results", main.type.results, out_avals),
    ):
        with context:
            expected = [type_of(a) for a in avals]
        if list(types) != expected:
            raise InvalidArtifactError(
                f"the artifact's module does not have the {what} that the artifact describes: "
                f"{', '.join(map(str, types)) or 'none'} instead of "
                f"{', '.join(map(str, expected)) or 'none'}"
            )


def parse(data: bytes) -> ir.Module:
    """The module of :func:`bytecode`."""
    return ir.Module.parse(data, context)


def for_arguments(module: ir.Module, types: Sequence[ir.Type]) -> ir.Module:
    """A module with dynamic shapes, specialized to arguments of more static types."""
    main = main_of(module)
    for argument, kind in zip(main.entry_block.arguments, types, strict=True):
        argument.set_type(kind)
    results = main.type.results
    with context:
        signature = ir.FunctionType.get(list(types), results)
    main.attributes["function_type"] = ir.TypeAttr.get(signature)
    return module


# Calls


def call_module(ctx: Any, key: Any, load: Any, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Call the ``main`` of another module, whose functions are inlined once.

    Args:
      key: the key of the module in the calling module.
      load: returns the module.
    """
    called = ctx.functions.get(key)
    if called is None:
        module = load()
        ctx.needs.update(needs_of(targets_of(module)))
        main = main_of(module)
        ins, outs = _shardings_of(main, "arg_attrs"), _shardings_of(main, "res_attrs")
        called = ctx.functions[key] = _move_functions(ctx, module), ins, outs
    name, ins, outs = called
    main = ctx.functions[name]
    callee = ir.FlatSymbolRefAttr.get(name, context=context)
    results = func.CallOp(main.type.results, callee, _constrained(values, ins)).results
    return _constrained(results, outs)


def _shardings_of(main: Any, kind: str) -> list[Any] | None:
    """Shardy's attributes of the arguments or results of a function; ``None`` if it has none."""
    operation = main.operation
    if kind not in operation.attributes:
        return None
    entries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(operation.attributes[kind])]
    shardings = [e["sdy.sharding"] if "sdy.sharding" in e else None for e in entries]
    return shardings if any(s is not None for s in shardings) else None


def _constrained(values: Sequence[ir.Value], shardings: Sequence[Any] | None) -> list[ir.Value]:
    if shardings is None:
        return list(values)
    constraint = sdy().ShardingConstraintOp
    return [v if s is None else constraint(v, s).result for v, s in zip(values, shardings)]


def _move_functions(ctx: Any, module: ir.Module) -> str:
    """Move a module's functions into the current module; return the new name of ``main``."""
    main = main_of(module)
    ops = list(module.body.operations)
    names = [ir.StringAttr(op.operation.attributes["sym_name"]).value for op in ops]
    renamed = ""
    for op, old in zip(ops, names):
        new = ctx.unique("call_exported_main" if old == "main" else old)
        while new != old and new in names:  # names must stay unique
            new = ctx.unique(new)
        ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
        ir.SymbolTable.set_symbol_name(op.operation, new)
        if old == "main":
            renamed = new
    main.attributes["sym_visibility"] = ir.StringAttr.get("private", context=context)
    for attribute in ("arg_attrs", "res_attrs"):
        if attribute in main.attributes:
            del main.attributes[attribute]
    for op in ops:
        moved = op.operation.clone(ip=ir.InsertionPoint(ctx.module.body))
        if op is main or op.operation == main.operation:
            ctx.functions[renamed] = moved
    return renamed
