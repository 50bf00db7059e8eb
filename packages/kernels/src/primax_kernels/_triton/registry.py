"""The rule kind ``triton``, and the evaluation of jaxprs by its rules."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core.extend import RuleKind

from .._emission.registry import Backend, Context as EmissionContext, Rule
from .._error_texts import reason_of
from . import types
from .emitter import Emitter
from .errors import TritonError, located

triton: Final[RuleKind[Rule]] = RuleKind(
    "triton",
    "(ctx, *values, **params) -> values",
    versioned=True,
    doc="""The operation in a kernel that Triton compiles.

    ctx: a `Context`, with the emitter of operations.
    values: a `Value` for each operand, or an object with ``read`` and ``write`` for references.

    Returns a `Value`, or a sequence of them if the primitive has several results.""",
)
"""Rules that emit operations of Triton's intermediate language."""

Context = EmissionContext[Emitter]
"""The argument of a rule besides the operands."""

REWRITES: Final[dict[str, str]] = {}
"""For primitives without a rule, what to write instead."""


def _refusal(operation: str, aval: Any) -> str | None:
    """The reason for which no value has a type, if there is one."""
    try:
        types.element(aval.dtype)
    except TritonError as error:
        return reason_of(error)
    elements = int(np.prod(types.padded(aval.shape), initial=1))
    if elements > types.MAX_ELEMENTS and not hasattr(aval, "inner_aval"):
        return (
            f"the operation {operation} gives {aval}, in a tensor of {elements} elements with "
            f"powers of two as sizes; the limit is {types.MAX_ELEMENTS}: use smaller blocks, or "
            "read parts in a loop"
        )
    return None


BACKEND: Final = Backend[Emitter]("Triton", triton, types.ELEMENTS, REWRITES, located, _refusal)
"""Triton as a compiler of jaxprs."""

triton.falls_back(BACKEND.from_expansion)
lower_jaxpr = BACKEND.lower
