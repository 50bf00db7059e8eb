"""Executables that jaxlib writes and cannot read: with about 32 nested conditionals or loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from jaxlib.mlir import ir

from .._runtime.disk.executables import deserialized

# From this depth on, the bytes of an executable are read once before they are stored.
_CERTAIN: Final = 16
_CONTROL: Final = frozenset(("stablehlo.while", "stablehlo.if", "stablehlo.case"))


def control_depth(module: ir.Module) -> int:
    """The number of loops and conditionals in each other, after the functions are inlined."""
    functions = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in module.body}
    depths: dict[str, int] = {}

    def of_function(name: str) -> int:
        if name not in depths:
            depths[name] = of_regions(functions[name].operation) if name in functions else 0
        return depths[name]

    def of_regions(op: Any) -> int:
        deepest = 0
        for region in op.regions:
            for block in region:
                for inner in block:
                    operation = inner.operation
                    if len(operation.regions):
                        below = of_regions(operation) + (operation.name in _CONTROL)
                    elif operation.name == "func.call":
                        below = of_function(ir.FlatSymbolRefAttr(inner.attributes["callee"]).value)
                    else:
                        continue
                    deepest = max(deepest, below)
        return deepest

    return of_function("main")


def check_of(
    module: ir.Module, devs: tuple, options: Any, callbacks: Sequence = ()
) -> Callable[[bytes], bool] | None:
    """A function that returns True if jaxlib reads the bytes of a module's executable.

    ``None`` if that is certain.
    """
    if control_depth(module) <= _CERTAIN:
        return None
    return partial(_can_read, devs, options, callbacks)


def _can_read(devs: tuple, options: Any, callbacks: Sequence, blob: bytes) -> bool:
    try:
        deserialized(blob, devs, options, callbacks)
    except Exception:
        return False
    return True


def checked(name: str, module: ir.Module, devs: tuple, options: Any, blob: bytes) -> bytes:
    """The bytes of an executable.

    Raises:
      ValueError: if jaxlib cannot read them.
    """
    check = check_of(module, devs, options)
    if check is None or check(blob):
        return blob
    raise ValueError(
        f"{name} has more nested conditionals and loops than jaxlib can read in a serialized "
        "executable (about 32): nest fewer of them, for example with lax.switch in place of a "
        "chain of lax.cond, or use export, which stores no machine code"
    )
