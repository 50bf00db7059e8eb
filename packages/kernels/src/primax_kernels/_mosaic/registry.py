"""The rule kind ``mosaic``, and the evaluation of jaxprs by its rules."""

from __future__ import annotations

from typing import Any, Final

from primax_core.extend import RuleKind

from .._emission.registry import Backend, Context as EmissionContext, Rule
from .._error_texts import reason_of
from . import types
from .emitter import Emitter
from .errors import MosaicError, located

mosaic: Final[RuleKind[Rule]] = RuleKind(
    "mosaic",
    "(ctx, *values, **params) -> values",
    versioned=True,
    doc="""The operation in a kernel that Mosaic compiles for TPUs.

    ctx: a `Context`, with the emitter of operations.
    values: a `Value` for each operand, or an object with ``read`` and ``write`` for references.

    Returns a `Value`, or a sequence of them if the primitive has several results.""",
)
"""Rules that emit operations of Mosaic's dialects."""

Context = EmissionContext[Emitter]
"""The argument of a rule besides the operands."""

REWRITES: Final[dict[str, str]] = {}
"""For primitives without a rule, what to write instead."""


def _refusal(operation: str, aval: Any) -> str | None:
    """The reason for which no value has a type, if there is one."""
    try:
        types.element(aval.dtype)
    except MosaicError as error:
        return reason_of(error)
    return None


BACKEND: Final = Backend[Emitter]("Mosaic", mosaic, types.ELEMENTS, REWRITES, located, _refusal)
"""Mosaic as a compiler of jaxprs."""

mosaic.falls_back(BACKEND.from_expansion)
lower_jaxpr = BACKEND.lower
