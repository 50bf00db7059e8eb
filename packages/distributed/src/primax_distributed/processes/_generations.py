"""Training that goes on after a process died: a loop over generations."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Literal

from primax_core.extend.processes import LeftGenerationError

from ._errors import ProcessFailure, ProgramMismatchError
from ._initialize import Joined, joined, start


class Generation:
    """One attempt of all processes to compute together: a context manager.

    A ``with`` block over it ends when all processes have come to its end. If one dies before, the
    block is left: the :class:`ProcessFailure` that its operations raise goes no further.

    Attributes:
      number: 1 for the first one.
      rank: number of this process.
      num_processes: number of processes.
      failure: why the generation ended early, or ``None``.
    """

    def __init__(self, this: Joined, number: int):
        self.number = number
        self.rank: int = this.contact.rank
        self.num_processes: int = this.contact.num_processes
        self.failure: ProcessFailure | None = None
        self._joined = this
        self._state: Literal["new", "inside", "finished", "ended"] = "new"

    def check(self) -> None:
        """Raise :class:`ProcessFailure` if a process has died; for code without operations."""
        failure = self._joined.contact.failure()
        if failure is not None:
            raise failure

    def __enter__(self) -> Generation:
        self._state = "inside"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:  # fmt: skip
        contact = self._joined.contact
        if error is None:
            self._state = "finished" if contact.done() else "ended"
            failure = contact.failure() if self._state == "ended" else None
            if isinstance(failure, ProgramMismatchError):
                raise failure
            self.failure = failure
            return False
        failure = contact.failure()
        if isinstance(failure, ProgramMismatchError):  # the next generation would do the same
            self._state = "ended"
            if isinstance(error, (ProgramMismatchError, KeyboardInterrupt, SystemExit)):
                return False
            raise failure from error
        of_others = isinstance(error, (ProcessFailure, LeftGenerationError))
        if of_others or contact.ended.is_set() and isinstance(error, (RuntimeError, OSError)):
            self._state, self.failure = "ended", failure
            return self._joined.place.supervised
        return False

    def __repr__(self) -> str:
        return f"Generation({self.number}, rank {self.rank} of {self.num_processes}, {self._state})"


def generations() -> Iterator[Generation]:
    """Compute together with other processes, again after each death.

    ::

        for generation in generations():
            with generation:
                state = restore_newest_checkpoint()
                while state.step < 1000:
                    state = train_step(state)
                    save_checkpoint(state)

    The loop ends when all processes have come to the end of the block. If a process dies or
    freezes, its launcher restarts it, and the others get a ``ProcessFailure`` from the operation
    that they wait in. The ``with`` block hides the error, and the next generation begins when all
    are there again. The survivors keep their process: what is imported, read and computed in NumPy.
    Arrays on devices, meshes and shardings belong to a generation, so the block makes them.

    Under a launcher that restarts processes (``python -m primax_distributed.run``,
    ``primax_distributed.ray``) there are as many generations as it takes. Otherwise there is one,
    and ``ProcessFailure`` leaves the loop, so that the batch system starts the job again.
    The processes join as in :func:`initialize` without arguments, if that was not called before.

    Raises:
      JoinError: nothing says which processes belong together, or some did not come.
    """
    this = joined()
    if this is None:
        this = start()
    number = this.contact.generation if this.contact.is_running() else 0
    while True:
        if not number:
            number = _enter(this)
        generation = Generation(this, number)
        yield generation
        if generation._state in ("new", "inside"):
            raise RuntimeError(
                "the body of a loop over generations() is a with block: for generation in "
                "generations(): with generation: ..."
            )
        if generation._state == "finished":
            return
        if not this.place.supervised:
            failure = generation.failure
            raise failure if failure is not None else RuntimeError("the generation has ended")
        number = 0


def _enter(this: Joined) -> int:
    while True:
        try:
            return this.enter()
        except ProcessFailure:  # one died while they joined
            continue
