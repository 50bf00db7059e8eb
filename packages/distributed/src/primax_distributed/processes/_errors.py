"""Errors of computations over several processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from primax_core.extend.runtime import ErrorWithPage


class JoinError(ErrorWithPage, RuntimeError, page=True):
    """This process cannot compute with the others; the message says why."""


class ProcessFailure(ErrorWithPage, RuntimeError, page=True):
    """Other processes died or froze, so the generation has ended.

    Attributes:
      ranks: those that died, in order; empty if the coordinator itself is gone.
      reasons: what is known of each death, by rank.
    """

    def __init__(self, message: str, reasons: Mapping[int, str] | None = None):
        super().__init__(message)
        self.reasons: dict[int, str] = dict(reasons or {})
        self.ranks: tuple[int, ...] = tuple(sorted(self.reasons))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.reasons)


class ProgramMismatchError(ErrorWithPage, RuntimeError, page=True):
    """The processes have begun different programs; the message has the ranks and the difference."""


_MEND = (
    "All processes must begin the same programs over the devices of several processes, in the same "
    "order. Look before this program for a branch on the rank, for data whose shape or type "
    "differs, or for a Python value of one process that became a constant."
)


def mismatch_text(difference: str) -> str:
    """The message of a :class:`ProgramMismatchError`."""
    return f"the programs of the processes differ: {difference}. {_MEND}"


def failure_text(ranks: Mapping[int, str], what: str = "died") -> str:
    """``rank 1 died: its process ended``."""
    return "; ".join(f"rank {rank} {what}: {why}" for rank, why in sorted(ranks.items()))
