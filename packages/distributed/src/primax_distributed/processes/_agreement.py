"""Comparison of the programs that the processes begin.

Processes that compute together begin the programs that they share in the same order. Each says
which program it begins, without waiting for an answer, and the coordinator compares.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from primax_core.extend.processes import SharedProgram

_SHOWN: Final = 300


class Begun(NamedTuple):
    """A program that a rank has begun; ``number`` counts its programs, from 1."""

    number: int
    name: str
    types: str
    digest: str
    ranks: tuple[int, ...]

    def differs(self, other: Begun) -> bool:
        """Return True if they are not the same program."""
        return self[1:] != other[1:]


def message_of(program: SharedProgram) -> bytes:
    """The line that says that a process begins a program."""
    types = program.types
    if len(types) > 2 * _SHOWN:
        types = f"{types[:_SHOWN]} ... {types[-_SHOWN:]}"
    parts = [program.name, types, program.digest, program.ranks]
    return json.dumps({"begins": parts}, separators=(",", ":")).encode() + b"\n"


class Agreement:
    """The programs of each rank that others have not begun yet.

    Two programs are compared when each is the oldest of its rank that others have not begun, and
    both ranks take part in both. So programs over some of the processes may be in any order that
    does not deadlock.

    >>> agreement = Agreement()
    >>> agreement.begin(0, ["train_step", "(f32[]) -> ()", "a1", [0, 1]])
    >>> print(agreement.begin(1, ["eval_step", "(f32[]) -> ()", "b7", [0, 1]]))
    rank 1 begins program 1 (eval_step), rank 0 program 1 (train_step)
    """

    def __init__(self) -> None:
        self._open: dict[int, deque[Begun]] = {}
        self._counts: dict[int, int] = {}

    def begin(self, rank: int, program: Sequence[Any]) -> str | None:
        """Add a program that a rank begins.

        Returns:
          The difference from the program of another rank, or ``None``.
        """
        name, types, digest, ranks = program
        number = self._counts[rank] = self._counts.get(rank, 0) + 1
        own = self._open.setdefault(rank, deque())
        own.append(Begun(number, str(name), str(types), str(digest), tuple(map(int, ranks))))
        waiting = [rank] if len(own) == 1 else []
        while waiting:
            rank = waiting.pop()
            head = self._head(rank)
            if head is None:
                continue
            complete = True
            for other in head.ranks:
                there = self._head(other)
                if there is None or rank not in there.ranks:
                    complete = False
                elif head.differs(there):
                    return difference_text(rank, head, other, there)
            if complete:
                for other in head.ranks:
                    self._open[other].popleft()
                    waiting.append(other)
        return None

    def _head(self, rank: int) -> Begun | None:
        programs = self._open.get(rank)
        return programs[0] if programs else None


def difference_text(rank: int, own: Begun, other_rank: int, other: Begun) -> str:
    """The difference of two programs, for the error."""
    first = f"rank {rank} begins program {own.number} ({own.name})"
    second = f"rank {other_rank} program {other.number} ({other.name})"
    if own.name != other.name:
        return f"{first}, {second}"
    if own.ranks != other.ranks:
        detail = f"over the ranks {[*own.ranks]} and {[*other.ranks]}"
    elif own.types != other.types:
        detail = f"of the types {own.types} and {other.types}"
    else:
        detail = (
            f"of the same types {own.types}, but with different operations, constants or orders of "
            f"devices (digests {own.digest} and {other.digest})"
        )
    return f"{first}, {second}, {detail}"
