"""Checks of modules from outside: XLA trusts its input, and some inputs end the process."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Final, NoReturn

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from .._base.errors import InvalidArtifactError
from . import operation_checks, portable

# jaxlib 0.10 overflows the stack at about 400 nested conditionals.
DEPTH: Final = 200
# They wait for, or exchange data with, other code in the process.
_FOREIGN: Final = frozenset((
    "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv",
))  # fmt: skip
_CALLEES: Final = ("callee", "decomposition", "called_computations")


def inspect(module: ir.Module) -> None:
    """Raise an error for a module that would crash XLA.

    Raises:
      InvalidArtifactError: for recursive functions or functions without a body, values of more
        bytes than can be addressed, operations that communicate with the host or are nested too
        deeply, and calls of LAPACK with inconsistent shapes.
    """
    calls: dict[str, set[str]] = {}
    for op in module.body.operations:
        if not isinstance(op, func.FuncOp):
            _refuse(f"it has an operation {op.operation.name} outside of its functions")
        if op.is_external:
            _refuse(f"its function {op.name.value!r} has no body")
        callees = calls[op.name.value] = set()
        _Walk(callees).region(op.regions[0], 0)
    _check_calls(calls)


def check_module(module: ir.Module, allowed: Collection[str]) -> None:
    """Raise an error for a deserialized module with disallowed contents or calls.

    Args:
      allowed: native functions that it may call, in addition to the stable ones.

    Raises:
      InvalidArtifactError: with the reason.
    """
    inspect(module)
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
    def __init__(self, callees: set[str]):
        self.callees = callees
        self.sound: set[Any] = set()

    def region(self, region: Any, depth: int) -> None:
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
                self.symbols(attributes[key])
        for region in op.regions:
            self.region(region, depth + 1)

    def symbols(self, attribute: Any) -> None:
        if isinstance(attribute, ir.FlatSymbolRefAttr):
            self.callees.add(attribute.value)
        elif isinstance(attribute, ir.ArrayAttr):
            for x in attribute:
                self.symbols(x)

    def type(self, kind: Any) -> None:
        if kind in self.sound:
            return
        if isinstance(kind, ir.RankedTensorType):
            sizes = [
                1 if kind.is_dynamic_dim(i) else max(kind.get_dim_size(i), 1)
                for i in range(kind.rank)
            ]
            if math.prod(sizes) >= 2**59:  # elements of 16 bytes
                _refuse(f"a value of type {kind} has more bytes than can be addressed")
        self.sound.add(kind)


def _check_calls(calls: dict[str, set[str]]) -> None:
    """Raise an error for recursive functions and for long chains of calls."""
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
            elif callee in above:
                _refuse(f"its function {callee!r} calls itself")
            elif callee not in calls:
                _refuse(f"it calls a function {callee!r} that it does not have")
            elif callee not in done:
                above.add(callee)
                chain.append((callee, iter(sorted(calls[callee]))))
                if len(chain) > DEPTH:
                    _refuse("its functions call each other too deeply")
