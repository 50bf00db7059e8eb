"""Lazy import of MLIR: importing the core must not load it.

Modules of primitives import from here: ``hlo``, ``chlo``, ``ir`` are jaxlib's modules, ``mlir`` is
:mod:`primax_core._lower.context` (types, attributes, constants), ``shaped`` is
:mod:`primax_core._lower.shaped` (operations with sizes), ``native`` calls native functions.
Each is loaded when one of its attributes is first read.
"""

from __future__ import annotations

import importlib
from typing import Any

from .._runtime.dispatch import install_compiler


class LazyModule:
    """Placeholder of a module, which is imported when an attribute is read."""

    def __init__(self, name: str):
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        name = self.__dict__["_name"]
        if name.startswith("."):
            module = importlib.import_module(name, __package__)
        else:
            from . import context as _  # noqa: F401 - registers the dialects

            module = importlib.import_module(name)
        value = getattr(module, attribute)
        self.__dict__[attribute] = value
        return value


hlo: Any = LazyModule("jaxlib.mlir.dialects.stablehlo")
chlo: Any = LazyModule("jaxlib.mlir.dialects.chlo")
ir: Any = LazyModule("jaxlib.mlir.ir")
mlir: Any = LazyModule(".context")
lowering: Any = LazyModule(".module")
shaped: Any = LazyModule(".shaped")
native: Any = LazyModule(".native")
readable: Any = LazyModule(".readable")
callbacks: Any = LazyModule(".callbacks")
_compile: Any = LazyModule(".compile")
compiling: Any = _compile
inspection: Any = LazyModule(".inspection")
locations: Any = LazyModule(".locations")
loop_invariants: Any = LazyModule(".loop_invariants")
platforms: Any = LazyModule(".platforms")
portable: Any = LazyModule(".portable")
static_shapes: Any = LazyModule(".static_shapes")
untrusted_shardings: Any = LazyModule(".untrusted_shardings")


def compile_jaxpr(jaxpr, in_specs, **options):
    """Compile a jaxpr for arguments with these specs."""
    return _compile.compile_jaxpr(jaxpr, in_specs, **options)


install_compiler(compile_jaxpr)
