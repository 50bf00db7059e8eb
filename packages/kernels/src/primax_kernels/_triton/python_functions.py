"""Functions of the package ``triton`` (``@triton.jit``) as text, without a GPU."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from primax_core.extend.runtime import state

from .._error_texts import reason_of
from . import types
from .errors import TritonError
from .function_text import rewritten

SIGNATURES: Final = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16",
    "float32": "fp32", "float64": "fp64", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip
"""Names of types in the package's signatures."""

_TESTED: Final = (3, 9)
"""The version of the package that this module was written for."""


def package() -> Any:
    """The package ``triton``.

    Raises:
      ImportError: if it is not installed, with the command.
    """
    try:
        return importlib.import_module("triton")
    except ImportError as error:
        raise ImportError(
            "triton_call needs the package triton, which compiles Python functions to Triton's "
            f"language: pip install 'primax-kernels[triton]' ({error})"
        ) from error


@dataclass(frozen=True)
class Function:
    """A function with the types of its pointers and the values of its other parameters.

    Attributes:
      fun: the function.
      source: digest of its source code and of the functions that it calls.
      inputs: name and dtype of the pointers to operands.
      outputs: name and dtype of the pointers to results.
      unused: names in ``outputs`` that the function lacks, because an operand is updated in place.
      scalars: name, dtype and value of the parameters that are numbers.
      constants: name and value of the parameters that are constants of the compiler.
      warps, stages: ``num_warps`` and ``num_stages``.
    """

    fun: Any
    source: str
    inputs: tuple[tuple[str, Any], ...]
    outputs: tuple[tuple[str, Any], ...]
    unused: frozenset[str]
    scalars: tuple[tuple[str, Any, Any], ...]
    constants: tuple[tuple[str, Any], ...]
    warps: int
    stages: int

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(self.fun.__name__)

    def text(self, target: str) -> tuple[str, str]:
        """Name and text of the function, whose parameters are the inputs and the outputs.

        Raises:
          TritonError: if it does not compile, with the line.
        """
        pointers = dict([*self.inputs, *self.outputs])
        signature = {}
        for name in self.fun.arg_names:
            if name in pointers:
                signature[name] = f"*{SIGNATURES[np.dtype(pointers[name]).name]}"
            else:
                signature[name] = "constexpr"
        signature |= {name: SIGNATURES[dtype.name] for name, dtype, _ in self.scalars}
        text = _compiled(self.fun, signature, dict(self.constants), target, self.warps, self.stages)
        order = [name for name, _ in (*self.inputs, *self.outputs)]
        unused = {name: pointers[name] for name in self.unused}
        names = [name for name in self.fun.arg_names if signature[name] != "constexpr"]
        return rewritten(
            text, names, order, unused, {name: value for name, _, value in self.scalars}
        )


def _compiled(
    fun: Any, signature: Mapping[str, str], constants: Mapping[str, Any], target: str,
    warps: int, stages: int,
) -> str:  # fmt: skip
    """The text of a module with the function and those that it calls."""
    triton = package()
    try:
        compiler = importlib.import_module("triton.compiler")
        target_type = importlib.import_module("triton.backends.compiler").GPUTarget
        ir = importlib.import_module("triton._C.libtriton").ir
        gpu = target_type("cuda", int("".join(c for c in target[3:] if c.isdigit())), 32)
        backend = compiler.make_backend(gpu)
        options = backend.parse_options(
            {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": True}
        )
        aligned = {
            (i,): [["tt.divisibility", 16]]
            for i, name in enumerate(fun.arg_names)
            if signature[name].startswith("*")
        }
        source = compiler.ASTSource(fun, signature, dict(constants), aligned)
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        stages_: dict[str, Any] = {}
        backend.add_stages(stages_, options, source.language)
    except (AttributeError, TypeError, ImportError) as error:
        raise TritonError(
            f"triton {getattr(triton, '__version__', '?')} has another interface of its compiler "
            f"({error}); triton_call was written for {'.'.join(map(str, _TESTED))}"
        ) from error
    try:
        module = source.make_ir(
            gpu, options, backend.get_codegen_implementation(options), backend.get_module_map(),
            context,
        )  # fmt: skip
        module = stages_["ttir"](module, dict(vars(options)))
        # As in other programs, lines do not change the key of an executable.
        with_lines = state.compilation_cache_include_metadata_in_key
        return str(module) if with_lines else str(module.str_nodebug())
    except Exception as error:
        raise TritonError(
            f"the function {fun.__name__} does not compile for {target}:\n{_root(error)}"
        ) from error


def _root(error: BaseException) -> BaseException:
    """The first error of a chain, without losing the one that has the line."""
    cause = error.__cause__
    if cause is None or str(cause) in str(error):
        return error
    return type(error)(f"{error}\n{cause}") if type(error) is RuntimeError else error


def scalar_of(value: Any) -> tuple[np.dtype[Any], Any] | None:
    """Dtype and value of a number as the package passes it; ``None`` for other objects."""
    if isinstance(value, (bool, np.bool_)):
        return np.dtype(np.bool_), bool(value)
    if isinstance(value, np.generic) and value.dtype.name in SIGNATURES:
        return value.dtype, value.item()
    if isinstance(value, float):
        return np.dtype(np.float32), value
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return np.dtype(np.int32), value
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{value} has more than 64 bits")
        return np.dtype(np.int64), value
    return None


def grid_of(grid: Any, parameters: Mapping[str, Any]) -> tuple[int, int, int]:
    """Numbers of programs along three axes.

    Args:
      grid: an integer, a sequence of up to three, or a function of the parameters that returns it.

    Raises:
      TypeError, ValueError: for other grids.
    """
    if callable(grid):
        grid = grid(dict(parameters))
    sizes = grid if isinstance(grid, Sequence) else (grid,)
    try:
        numbers = [operator.index(n) for n in sizes]
    except TypeError:
        raise TypeError(
            f"grid is an integer, a tuple of up to 3 of them, or a function, got {grid!r}"
        ) from None
    if not 1 <= len(numbers) <= 3 or any(n < 1 for n in numbers):
        raise ValueError(f"grid has 1 to 3 positive numbers, got {grid!r}")
    x, y, z = numbers + [1] * (3 - len(numbers))
    if x >= 2**31 or y > 65535 or z > 65535:
        raise ValueError(f"grid is at most (2147483647, 65535, 65535), got {(x, y, z)}")
    return x, y, z


def check_dtype(dtype: Any, name: str) -> None:
    """Check that a pointer can have a dtype.

    Raises:
      TritonError: if not.
    """
    try:
        types.element(dtype)
    except TritonError as error:
        raise TritonError(f"{name}: {reason_of(error)}") from None
