"""Categories of failed checks, as exceptions."""

from __future__ import annotations

from typing import Final

from primax_core.extend.runtime import ErrorWithPage


class CheckError(ErrorWithPage, ValueError):
    """A check failed while a program ran. The message says which, where, and for which values."""


class FailedCheckError(CheckError, page=True):
    """A condition of ``check`` was false."""


class NaNError(CheckError, page=True):
    """An operation gave a NaN."""


class InfError(CheckError, page=True):
    """An operation gave an infinity."""


class DivisionByZeroError(CheckError, page=True):
    """A division by zero."""


class OOBError(CheckError, page=True):
    """An index was out of bounds."""


CheckError.__name__ = CheckError.__qualname__ = CheckError._page = "JaxRuntimeError"
USER: Final = frozenset({FailedCheckError})
