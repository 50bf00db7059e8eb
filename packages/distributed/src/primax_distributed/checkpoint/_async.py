"""Checkpoints that are written while the program computes."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Any

from ._folders import checked_path
from ._save import Pending, prepare


class AsyncCheckpointer:
    """Writer of checkpoints in a thread, one at a time.

    :meth:`save` copies the values to the host and returns; the arrays may then be changed, donated
    or deleted. An error of the writer is raised by the next :meth:`save`, by :meth:`wait` or at
    the end of the ``with`` block.

    Args:
      path: a folder, as for :func:`save`.
      concurrent_bytes, timeout_seconds: as for :func:`save`.

    >>> import tempfile, numpy as np
    >>> from primax_distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> with checkpoint.AsyncCheckpointer(folder) as checkpoints:
    ...     for step in range(3):
    ...         checkpoints.save({"w": np.full(2, step)}, step)
    >>> checkpoint.restore(folder)
    {'w': array([2, 2])}
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        concurrent_bytes: int = 1 << 30,
        timeout_seconds: float = 300,
    ) -> None:
        self.path: str = str(checked_path(path))
        self._concurrent_bytes = concurrent_bytes
        self._timeout = timeout_seconds
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def save(self, tree: Any, step: int, *, overwrite: bool = False) -> None:
        """Copy a tree to the host, and write it in the background.

        It waits for the checkpoint before. Arguments and errors as for :func:`save`.

        Raises:
          CheckpointError: the checkpoint before could not be written.
        """
        self.wait()
        pending = prepare(self.path, tree, step, overwrite, self._concurrent_bytes, self._timeout)
        # A thread that the interpreter waits for, so that the last checkpoint is completed.
        self._thread = threading.Thread(target=self._write, args=(pending,), name="checkpoint")
        self._thread.start()

    def _write(self, pending: Pending) -> None:
        try:
            pending.write()
        except BaseException as e:
            self._error = e

    def wait(self) -> None:
        """Wait until the last checkpoint is complete.

        Raises:
          CheckpointError: it could not be written; the same errors as of :func:`save`.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def __enter__(self) -> AsyncCheckpointer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.wait()
        except BaseException as e:
            if error is None:
                raise
            error.add_note(f"In addition, the last checkpoint could not be written: {e}")
