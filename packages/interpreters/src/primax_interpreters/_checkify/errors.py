"""Categories of failed checks, as exceptions."""

from __future__ import annotations

from typing import Final


class CheckError(ValueError):
    """A check failed while a program ran. The message says which, where, and for which values."""


class FailedCheckError(CheckError):
    """A condition of ``check`` was false."""


class NaNError(CheckError):
    """An operation gave a NaN."""


class InfError(CheckError):
    """An operation gave an infinity."""


class DivisionByZeroError(CheckError):
    """A division by zero."""


class OOBError(CheckError):
    """An index was out of bounds."""


CheckError.__name__ = CheckError.__qualname__ = "JaxRuntimeError"
USER: Final = frozenset({FailedCheckError})
