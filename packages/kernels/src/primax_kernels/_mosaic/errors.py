"""Errors of the Mosaic backend, with the lines of the kernel and of the operation."""

from __future__ import annotations

from typing import Any

from primax_core.extend import summarize
from primax_core.extend.runtime import ErrorWithPage


class LoweringException(Exception):
    """A kernel that cannot be lowered for a TPU."""


class MosaicError(ErrorWithPage, LoweringException, NotImplementedError, page=True):
    """A kernel that the Mosaic backend does not support, with the line and the rewrite."""


def located(message: str, kernel: Any, eqn: Any = None) -> MosaicError:
    """The error for a kernel and an operation of it.

    Args:
      kernel: a `Kernel`, or the text that names it.
      eqn: the equation, whose source location is the user's line.
    """
    return MosaicError(located_text(message, kernel, eqn))


def located_text(message: str, kernel: Any, eqn: Any = None) -> str:
    """As `located`, the text of the reason without the address of the error's page."""
    source = getattr(kernel, "source", kernel)
    where = "" if eqn is None or not eqn.source else f"{summarize(eqn.source)}: "
    return f"{where}{message} (in the kernel {source}, compiled by Mosaic for a TPU)"
