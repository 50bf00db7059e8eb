"""Checks of modules from outside: XLA trusts its input, and some inputs end the process."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Final, NoReturn

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from .._base.errors import InvalidArtifactError
from . import operation_checks, portable, untrusted_shardings

# jaxlib 0.10 overflows the stack at about 400 nested conditionals, or 200 calls in each other.
DEPTH: Final = 100
# From this number of elements on, jaxlib 0.12 divides by zero in some compilations.
LARGEST: Final = 2**36
# They wait for, or exchange data with, other code in the process.
_FOREIGN: Final = frozenset((
    "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv",
))  # fmt: skip
_CALLEES: Final = ("callee", "decomposition", "called_computations")


def inspect(module: ir.Module) -> None:
    """Raise an error for a module that would crash XLA.

    Raises:
      InvalidArtifactError: for recursive functions or functions without a body, values with too
        many elements, operations that communicate with the host, that are nested too deeply
        (after the functions are inlined), or that fail a check of `operation_checks`.
    """
    calls: dict[str, dict[str, int]] = {}
    depths: dict[str, int] = {}
    for op in module.body.operations:
        if not isinstance(op, func.FuncOp):
            _refuse(f"it has an operation {op.operation.name} outside of its functions")
        if op.is_external:
            _refuse(f"its function {op.name.value!r} has no body")
        walk = _Walk()
        walk.region(op.regions[0], 0)
        calls[op.name.value], depths[op.name.value] = walk.callees, walk.deepest
    _check_calls(calls, depths)


def check_module(
    module: ir.Module, allowed: Collection[str], nr_devices: int | None = None
) -> None:
    """Raise an error for a deserialized module with disallowed contents or calls.

    Args:
      allowed: native functions that it may call, in addition to the stable ones.
      nr_devices: its number of devices, for modules of unknown origin; ``None`` if the source is
        trusted.

    Raises:
      InvalidArtifactError: with the reason.
    """
    inspect(module)
    if nr_devices is not None:
        untrusted_shardings.check(module, nr_devices)
    refused = portable.refused_calls(module, allowed)
    if refused:
        target, text = next(iter(refused.items()))
        raise InvalidArtifactError(
            f"the artifact's module calls the native function {target!r}, which is not one of "
            "the allowed functions and was not allowed with "
            f"DisabledSafetyCheck.custom_call when it was exported:\n{text[:500]}"
        )


def _refuse(why: str) -> NoReturn:
    raise InvalidArtifactError(f"the artifact's module cannot be used: {why}")


class _Walk:
    """A walk through one function.

    Attributes:
      callees: the functions that it calls, with the depth of the innermost call.
      deepest: the depth of its innermost region.
    """

    def __init__(self) -> None:
        self.callees: dict[str, int] = {}
        self.deepest = 0
        self.sound: set[Any] = set()

    def region(self, region: Any, depth: int) -> None:
        self.deepest = max(self.deepest, depth)
        if depth > DEPTH:
            _refuse("its operations are nested too deeply")
        for block in region.blocks:
            for argument in block.arguments:
                self.type(argument.type)
            for op in block.operations:
                self.operation(op.operation, depth)

    def operation(self, op: Any, depth: int) -> None:
        name = op.name
        if name in _FOREIGN:
            _refuse(f"its operation {name} communicates with the host")
        problem = operation_checks.problem_of(op)
        if problem:
            _refuse(f"its {name} is invalid: {problem}")
        for value in op.results:
            self.type(value.type)
        attributes = op.attributes
        for key in _CALLEES:
            if key in attributes:
                self.symbols(attributes[key], depth)
        for region in op.regions:
            self.region(region, depth + 1)

    def symbols(self, attribute: Any, depth: int) -> None:
        if isinstance(attribute, ir.FlatSymbolRefAttr):
            name = attribute.value
            self.callees[name] = max(self.callees.get(name, 0), depth)
        elif isinstance(attribute, ir.ArrayAttr):
            for x in attribute:
                self.symbols(x, depth)

    def type(self, kind: Any) -> None:
        if kind in self.sound:
            return
        if isinstance(kind, ir.RankedTensorType):
            sizes = [
                1 if kind.is_dynamic_dim(i) else max(kind.get_dim_size(i), 1)
                for i in range(kind.rank)
            ]
            if math.prod(sizes) >= LARGEST:
                _refuse(f"a value of type {kind} has more elements than XLA can index")
        self.sound.add(kind)


def _check_calls(calls: dict[str, dict[str, int]], depths: dict[str, int]) -> None:
    """Raise an error for recursive functions, and for calls that are too deep once inlined.

    Args:
      calls: the callees of each function, with the depths of their calls.
      depths: the depth of each function alone; afterwards with its callees.
    """
    done: set[str] = set()
    for start in calls:
        chain = [(start, iter(sorted(calls[start])))]
        above = {start}
        while chain:
            name, rest = chain[-1]
            callee = next(rest, None)
            if callee is None:
                chain.pop()
                above.discard(name)
                done.add(name)
                inlined = [depth + 1 + depths[c] for c, depth in calls[name].items()]
                depths[name] = max(depths[name], *inlined, 0)
                if depths[name] > DEPTH:
                    _refuse("its functions call each other too deeply")
            elif callee in above:
                _refuse(f"its function {callee!r} calls itself")
            elif callee not in calls:
                _refuse(f"it calls a function {callee!r} that it does not have")
            elif callee not in done:
                above.add(callee)
                chain.append((callee, iter(sorted(calls[callee]))))
