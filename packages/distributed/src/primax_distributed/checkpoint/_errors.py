"""Errors of checkpoints."""

from __future__ import annotations

from primax_core.extend.runtime import ErrorWithPage


class CheckpointError(ErrorWithPage, page=True):
    """A checkpoint could not be written or read; the message contains the path and the reason."""


class CheckpointNotFoundError(CheckpointError, FileNotFoundError, page=True):
    """The path has no complete checkpoint, or not the requested step."""


class CheckpointExistsError(CheckpointError, FileExistsError, page=True):
    """The step exists, or another writer committed it first."""


class CheckpointDamagedError(CheckpointError, page=True):
    """Metadata or values are missing, truncated or changed."""


class CheckpointMismatchError(CheckpointError, ValueError, page=True):
    """The checkpoint has another structure, shape or dtype than requested."""


class CheckpointWriteError(CheckpointError, OSError, page=True):
    """The checkpoint could not be written: no space, no permission, or another process failed."""


def first_line(error: BaseException, limit: int = 1000) -> str:
    """The type and the first line of an error's text.

    >>> first_line(ValueError("no space\\nleft"))
    'ValueError: no space'
    """
    line = str(error).partition("\n")[0].strip().partition(" [tensorstore_spec=")[0]
    return f"{type(error).__name__}: {line[:limit]}"
