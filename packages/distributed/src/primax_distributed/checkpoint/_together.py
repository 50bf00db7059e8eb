"""Agreement of the processes that save or restore together."""

from __future__ import annotations

import itertools
import json
import time
import weakref
from typing import Any, Final

from primax_core import process_count, process_index

from ..processes._initialize import joined, member
from ._errors import CheckpointError, CheckpointNotFoundError, CheckpointWriteError, first_line

_LOOK: Final = 1.0
"""Seconds between looks whether another process has died."""

_counters: Final[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()


class Group:
    """The processes of one operation, which all of them begin in the same order.

    Args:
      timeout: seconds to wait for the others.
    """

    def __init__(self, timeout: float) -> None:
        self.rank: int = process_index()
        self.size: int = process_count()
        self.timeout = timeout
        self._member: Any = member() if self.size > 1 else None
        if self.size > 1 and self._member is None:
            raise CheckpointError(
                f"{self.size} processes compute together, but this one has not called "
                "primax_distributed.processes.initialize, by which they agree on checkpoints"
            )
        if self._member is not None:
            number = next(_counters.setdefault(self._member, itertools.count()))
            self._prefix = f"primax_checkpoint/{number}"

    def share(self, name: str, value: Any = None, error: BaseException | None = None) -> Any:
        """A value of rank 0, as JSON, in all processes.

        Raises:
          CheckpointError: rank 0 failed, or did not come in time.
        """
        if self.size == 1 or self.rank == 0:
            if self.size > 1:
                text = None if error is None else first_line(error)
                self._member.set(f"{self._prefix}/{name}", json.dumps([value, text]))
            if error is not None:
                raise error
            return value
        value, text = json.loads(self._get(name, 0))
        if text is not None:
            kind, _, message = text.partition(": ")
            if kind == CheckpointNotFoundError.__name__:
                raise CheckpointNotFoundError(message)
            raise CheckpointWriteError(f"rank 0 could not save the checkpoint: {text}")
        return value

    def report(self, name: str, error: BaseException | None = None) -> None:
        """Tell rank 0 that this process has finished a part of the operation, or failed."""
        if self.size > 1:
            text = "" if error is None else first_line(error)
            self._member.set(f"{self._prefix}/{name}/{self.rank}", text)

    def fail(self, error: BaseException) -> None:
        """Tell the others that this process does not begin."""
        if self.size > 1 and self.rank == 0:
            self._member.set(f"{self._prefix}/begun", json.dumps([None, first_line(error)]))
        else:
            self.report("written", error)

    def collect(self, name: str) -> None:
        """In rank 0: wait for the reports of all processes.

        Raises:
          CheckpointWriteError: a process failed, or did not report in time.
        """
        failures = []
        for rank in range(1, self.size):
            text = self._get(f"{name}/{rank}", rank)
            if text:
                failures.append(f"rank {rank}: {text}")
        if failures:
            raise CheckpointWriteError(
                f"the checkpoint was not written by all processes: {'; '.join(failures)}"
            )

    def _get(self, name: str, rank: int) -> str:
        deadline = time.monotonic() + self.timeout
        while True:
            left = deadline - time.monotonic()
            try:
                value: str = self._member.get(f"{self._prefix}/{name}", min(max(left, 0), _LOOK))
                return value
            except TimeoutError as e:
                this = joined()
                failure = None if this is None else this.contact.failure()
                if failure is not None:
                    raise CheckpointWriteError(
                        f"the checkpoint was not completed: {failure}"
                    ) from failure
                if left > _LOOK:
                    continue
                raise CheckpointWriteError(
                    f"rank {rank} did not come to the checkpoint within {self.timeout:g} s: every "
                    f"one of the {self.size} processes must save (or restore) it, in the same order"
                ) from e
