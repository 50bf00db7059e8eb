"""Kernels that Triton's compiler refuses, told before it runs."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any, Final

from primax_core.extend import Eqn, Jaxpr, jaxprs_in, walk

from .._error_texts import reason_of
from .._kernel import Kernel
from . import types
from .errors import TritonError, located, located_text
from .params import Resolved, resolve
from .program import Program, emit

_SHARED: Final = {80: 166912, 86: 101376, 87: 166912, 89: 101376, 90: 232448, 100: 232448,
                  103: 232448, 120: 101376, 121: 101376}  # fmt: skip
"""Bytes of shared memory that one step may use, by compute capability."""

_FIRST: Final = 80
"""The first compute capability that XLA's Triton supports."""

_FIRST_F8: Final = 89


def limits(kernel: Kernel, params: Any = None, target: str | None = None) -> tuple[str, ...]:
    """The reasons for which the Triton backend refuses a kernel; empty if it accepts it.

    Each reason names the line and what to write instead. Nothing is compiled.

    Args:
      params: parameters of the compiler, such as a ``triton.CompilerParams``.
      target: the GPU, as ``"sm_90"``; by default only limits of all GPUs are checked.

    Raises:
      ValueError: for a target of another form.
    """
    capability = _capability(target)
    reasons = _of_params(kernel, params)
    if not reasons:
        resolved = resolve(params, kernel.jaxpr)
        reasons = _of_target(kernel, capability) + _of_operands(kernel, capability)
        reasons += _of_conversions(kernel, capability)
        reasons += _of_products(kernel, resolved, capability)
    if not reasons:
        try:
            _of_program(emit(kernel, params), kernel)
        except TritonError as error:
            reasons.append(reason_of(error))
    return tuple(reasons)


def checked(kernel: Kernel, params: Any = None, target: str | None = None) -> Program:
    """The program of a kernel.

    Raises:
      TritonError: with the first of its `limits`.
    """
    reasons = limits(kernel, params, target)
    if reasons:
        raise TritonError(reasons[0])
    return emit(kernel, _with_stages(kernel, resolve(params, kernel.jaxpr), _capability(target)))


def _with_stages(kernel: Kernel, params: Resolved, capability: int | None) -> Resolved:
    """Parameters with as many stages by default as shared memory has room for."""
    if capability is None or "num_stages" in params.chosen:
        return params
    products = [eqn for eqn, looped in _products(kernel.jaxpr, False) if looped]
    operands = max((sum(_nbytes(v.aval) for v in q.invars) for q in products), default=0)
    available = _SHARED.get(capability, min(_SHARED.values()))
    spare = 0 if capability >= 90 else 1  # Hopper holds the operands of all stages
    stages = params.num_stages
    while stages > 1 and (stages - spare) * operands > available:
        stages -= 1
    return replace(params, num_stages=stages)


def _capability(target: str | None) -> int | None:
    if target is None:
        return None
    match = re.fullmatch(r"sm_(\d+)[af]?", target)
    if match is None:
        raise ValueError(f"target is a compute capability such as 'sm_90', got {target!r}")
    return int(match[1])


def _of_params(kernel: Kernel, params: Any) -> list[str]:
    resolved = resolve(params, kernel.jaxpr)
    reasons = []
    for name in ("num_warps", "num_stages"):
        value = getattr(resolved, name)
        if isinstance(value, bool) or not isinstance(value, int):
            reasons.append(located_text(f"{name} is an integer, got {value!r}", kernel))
    if reasons:
        return reasons
    n = resolved.num_warps
    if not 1 <= n <= 32 or n & (n - 1):
        text = f"num_warps is {n}; it is 1, 2, 4, 8, 16 or 32"
        reasons.append(located_text(text, kernel))
    if not 1 <= resolved.num_stages <= 16:
        text = f"num_stages is {resolved.num_stages}; it is between 1 and 16"
        reasons.append(located_text(text, kernel))
    return reasons


def _of_target(kernel: Kernel, capability: int | None) -> list[str]:
    if capability is None or capability >= _FIRST:
        return []
    text = f"the GPU has compute capability sm_{capability}; Triton needs sm_{_FIRST} or later"
    return [located_text(f"{text}: call the kernel on a CPU, or write it with lax", kernel)]


def _of_operands(kernel: Kernel, capability: int | None) -> list[str]:
    """Reasons about types and sizes of operands, results and scratch memory."""
    reasons = []
    named = [(f"prefetched scalar {i}", a) for i, a in enumerate(kernel.prefetched)]
    named += [(m.name, m.aval) for m in (*kernel.inputs, *kernel.outputs)]
    named += [(f"scratch_shapes[{i}]", a) for i, a in enumerate(kernel.scratch)]
    for name, aval in named:
        try:
            element = types.element(aval.dtype)
        except TritonError as error:
            reasons.append(located_text(f"{name}: {reason_of(error)}", kernel))
            continue
        if element == "f8E4M3FN" and capability is not None and capability < _FIRST_F8:
            text = f"{name}: float8_e4m3fn needs sm_{_FIRST_F8}, the GPU has sm_{capability}; use "
            reasons.append(located_text(f"{text}float8_e5m2 or bfloat16", kernel))
        if 0 in aval.shape:
            text = f"{name} of shape {aval.shape} has no elements: do not call the kernel for it"
            reasons.append(located_text(text, kernel))
        elif name.startswith("scratch") and _elements(aval.shape) > types.MAX_ELEMENTS:
            text = (
                f"{name} of shape {aval.shape} is held in registers, which are a tensor of at most "
                f"{types.MAX_ELEMENTS} elements: use a smaller one, or a result of the kernel"
            )
            reasons.append(located_text(text, kernel))
    return reasons


def _of_conversions(kernel: Kernel, capability: int | None) -> list[str]:
    """Reasons about types inside of the kernel, for which the compiler ends the process."""
    if capability is None or capability >= _FIRST_F8:
        return []
    text = f"float8_e4m3fn needs sm_{_FIRST_F8}, the GPU has sm_{capability}; use float8_e5m2"
    return [
        located_text(text, kernel, eqn)
        for eqn in walk(kernel.jaxpr)
        if any(getattr(v.aval, "dtype", None) == "float8_e4m3fn" for v in eqn.outvars)
    ]


def _elements(shape: tuple[int, ...]) -> int:
    return math.prod(types.padded(shape))


def _of_products(kernel: Kernel, params: Resolved, capability: int | None) -> list[str]:
    """Reasons about the shared memory of products of matrices."""
    available = _SHARED.get(capability, 101376) if capability else max(_SHARED.values())
    reasons = []
    for eqn, looped in _products(kernel.jaxpr, False):
        operands = sum(_nbytes(v.aval) for v in eqn.invars)
        stages = params.num_stages - 1 if looped and "num_stages" in params.chosen else 1
        needed = operands * max(stages, 1)
        if needed > available:
            blocks = " and ".join(str(v.aval) for v in eqn.invars)
            text = (
                f"the product of {blocks} with num_stages={params.num_stages} needs at least "
                f"{needed} bytes of shared memory, {available} are available: use smaller blocks "
                "or fewer stages"
            )
            reasons.append(located_text(text, kernel, eqn))
    return reasons


def _nbytes(aval: Any) -> int:
    return _elements(aval.shape) * types.bits(aval.dtype) // 8


def _on_tensor_cores(operand: Any) -> bool:
    dtype = operand.aval.dtype
    return dtype == "int8" or dtype.name in types.ELEMENTS and types.is_float(dtype)


def _products(jaxpr: Jaxpr, looped: bool) -> list[tuple[Eqn, bool]]:
    """The products of matrices of a jaxpr, and whether they are in a loop."""
    pairs = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name == "dot_general" and all(map(_on_tensor_cores, eqn.invars)):
            pairs.append((eqn, looped))
        for body in jaxprs_in(eqn.params):
            pairs += _products(body, looped or name in ("scan", "while"))
    return pairs


def _of_program(program: Program, kernel: Kernel) -> None:
    """Check the number of programs."""
    if math.prod(program.grid) >= 2**31:
        raise located(f"the grid {kernel.grid} has {math.prod(program.grid)} programs", kernel)
