"""Forms of transformed kernels, for ``explain_kernel``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax_core import dtypes

from ._batching import batched_kernel
from ._derivatives import JvpKernel, active_operands, jvp_kernel
from ._kernel import Kernel


@dataclass(frozen=True)
class TransformationReport:
    """A transformation of a kernel.

    Attributes:
      name: ``"vmap"``, ``"jvp"`` or ``"grad"``.
      cuda, tpu: whether it is a kernel on GPUs and on TPUs, else operations on arrays. On a CPU
        a kernel and its transformations are operations on arrays.
      reason: why, or why not.
    """

    name: str
    cuda: bool
    tpu: bool
    reason: str

    def __str__(self) -> str:
        platforms = [title for title, is_kernel in (("GPUs", self.cuda), ("TPUs", self.tpu))
                     if is_kernel]  # fmt: skip
        form = f"a kernel on {' and '.join(platforms)}" if platforms else "operations on arrays"
        return f"{self.name}: {form}, {self.reason}"


def transformations_of(kernel: Kernel) -> tuple[TransformationReport, ...]:
    """The reports for ``vmap``, ``jvp`` and ``grad`` of all operands but prefetched scalars."""
    grad = TransformationReport(
        "grad", False, False, "put a custom_vjp around the call for kernels of your own"
    )
    return _vmap(kernel), _jvp(kernel), grad


def _vmap(kernel: Kernel) -> TransformationReport:
    mapped = [False] * len(kernel.prefetched) + [True] * len(kernel.inputs)
    batched = batched_kernel(kernel, mapped, 2)
    if batched is None:
        reason = "because contents may pass from one example to the next"
        return TransformationReport("vmap", False, False, reason)
    reasons = _refusals(batched)
    return _report("vmap", reasons, "the batch is one more dimension of the grid")


def _jvp(kernel: Kernel) -> TransformationReport:
    operands = [*kernel.prefetched, *(m.aval for m in kernel.inputs)]
    nonzero = [
        i >= len(kernel.prefetched) and bool(dtypes.issubdtype(a.dtype, np.inexact))
        for i, a in enumerate(operands)
    ]
    if not any(nonzero):
        return TransformationReport("jvp", False, False, "because no operand has a tangent")
    derived = jvp_kernel(kernel, active_operands(kernel, nonzero))
    if not isinstance(derived, JvpKernel):
        return TransformationReport("jvp", False, False, f"because {derived}")
    return _report("jvp", _refusals(derived), "each reference has one to its tangents beside it")


def _report(name: str, reasons: dict[str, str], why: str) -> TransformationReport:
    cuda, tpu = "GPUs" not in reasons, "TPUs" not in reasons
    others = "; ".join(f"not on {title}: {text}" for title, text in reasons.items())
    reason = "; ".join(part for part in (why if cuda or tpu else "", others) if part)
    return TransformationReport(name, cuda, tpu, reason)


def _refusals(kernel: Kernel) -> dict[str, str]:
    """The first reason of each backend that refuses a kernel."""
    # The rules of backends are loaded when they are first used.
    from ._mosaic.limits import limits as tpu_limits
    from ._triton.limits import limits as gpu_limits

    backends: dict[str, Callable[..., Any]] = {"GPUs": gpu_limits, "TPUs": tpu_limits}
    reasons = {title: limits(kernel, kernel.compiler_params) for title, limits in backends.items()}
    return {title: texts[0] for title, texts in reasons.items() if texts}
