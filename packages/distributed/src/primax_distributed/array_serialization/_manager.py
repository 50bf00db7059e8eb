"""Many arrays: written and read concurrently, in the foreground or in a thread."""

from __future__ import annotations

import abc
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from primax_core import Array

from ..checkpoint._stores import ByteLimiter, finished, host_parts, run
from ..checkpoint._together import Group
from ._specs import get_tensorstore_spec
from ._transfers import async_deserialize, checked_array, write


def _checked_lengths(name: str, **lists: Any) -> None:
    lengths = {what: len(values) for what, values in lists.items() if values is not None}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{n} {what}" for what, n in lengths.items())
        raise ValueError(f"{name} needs lists of the same length, got {text}")


def run_serialization(arrays: Sequence[Array], tensorstore_specs: Sequence[Any]) -> None:
    """Write arrays, and wait until they are durable.

    Args:
      arrays: the arrays.
      tensorstore_specs: a spec for each, such as those of :func:`get_tensorstore_spec`.

    Raises:
      TypeError: an element is not an array.
      ValueError: the lengths differ, or a store refuses.
    """
    run(_written(_copied("run_serialization", arrays, tensorstore_specs), None))


def _copied(name: str, arrays: Sequence[Any], specs: Sequence[Any]) -> list[Any]:
    _checked_lengths(name, arrays=arrays, tensorstore_specs=specs)
    for x in arrays:
        checked_array(x, name)
    return [(host_parts(x), _Like(x), spec) for x, spec in zip(arrays, specs, strict=True)]


class _Like:
    """Shape, dtype and shape of the parts of an array."""

    def __init__(self, x: Array) -> None:
        self.shape = x.shape
        self.dtype = x.dtype
        self.sharding = x.sharding


async def _written(copies: list[Any], transaction: Any) -> None:
    await finished([
        write(parts, like, spec, None, transaction=transaction) for parts, like, spec in copies
    ])  # fmt: skip


def run_deserialization(
    shardings: Sequence[Any],
    tensorstore_specs: Sequence[Any],
    global_shapes: Sequence[Any] | None = None,
    dtypes: Sequence[Any] | None = None,
    concurrent_gb: int = 32,
) -> list[Array]:
    """Read arrays with any shardings; each process reads the parts of its devices.

    Args:
      shardings: a sharding or ``Format`` for each array.
      tensorstore_specs: a spec for each.
      global_shapes, dtypes: as for :func:`async_deserialize`, for each array.
      concurrent_gb: limit of the bytes of concurrent reads, in units of 10⁹.

    Raises:
      TypeError: an element is not a sharding.
      ValueError: the lengths differ, there is no such array, or a size is not divisible.
    """
    _checked_lengths(
        "run_deserialization", shardings=shardings, tensorstore_specs=tensorstore_specs,
        global_shapes=global_shapes, dtypes=dtypes,
    )  # fmt: skip
    n = len(shardings)

    async def read() -> list[Array]:
        limiter = ByteLimiter(int(concurrent_gb * 10**9))
        parts = (shardings, tensorstore_specs, global_shapes or [None] * n, dtypes or [None] * n)
        return await finished([
            async_deserialize(*each, byte_limiter=limiter) for each in zip(*parts, strict=True)
        ])  # fmt: skip

    return run(read())


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """Interface of writers that write in the background."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error of the last write, if it failed and was not reported."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until the last write is finished in all processes."""

    @abc.abstractmethod
    def serialize(
        self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable[[], None]
    ) -> None:
        """Write arrays in the background."""

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> list[Array]:
        """Read arrays."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Writer of arrays in a thread, together with the other processes.

    Args:
      timeout_secs: limit of the time to wait for the other processes.

    >>> import tempfile, primax_core as pc
    >>> manager = GlobalAsyncCheckpointManager()
    >>> folder, x = tempfile.mkdtemp(), pc.device_put(3.0)
    >>> manager.serialize_with_paths([x], [folder + "/x"], on_commit_callback=lambda: print("done"))
    >>> manager.wait_until_finished()
    done
    >>> manager.deserialize_with_paths([x.sharding], [folder + "/x"])
    [Array(3., dtype=float32)]
    """

    def __init__(self, timeout_secs: float = 300) -> None:
        self._timeout = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def check_for_errors(self) -> None:
        """Raise the error of the last write, once.

        Raises:
          ValueError: a store refused.
          CheckpointWriteError: another process failed, or did not come in time.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until the last write is finished in all processes; errors as above."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self.check_for_errors()

    def serialize(
        self,
        arrays: Any,
        tensorstore_specs: Any,
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Copy arrays to the host and write them in the background.

        It waits for the write before. All processes must call it, with the same arrays.

        Args:
          arrays: the arrays.
          tensorstore_specs: a spec for each.
          on_commit_callback: called in rank 0 when all processes have written.
          transaction: a ``tensorstore.Transaction``, which the caller commits. It contains the
            values when this returns.

        Raises:
          TypeError: an element is not an array.
          ValueError: the lengths differ.
        """
        self.wait_until_finished()
        copies = _copied("serialize", arrays, tensorstore_specs)
        group = Group(self._timeout)
        in_transaction = threading.Event()
        self._thread = threading.Thread(
            target=self._write,
            args=(group, copies, on_commit_callback, transaction, in_transaction.set),
        )
        self._thread.start()
        if transaction is not None:
            in_transaction.wait()  # tensorstore may deadlock if it is committed or used meanwhile

    def _write(
        self,
        group: Group,
        copies: list[Any],
        callback: Callable[[], None] | None,
        transaction: Any,
        on_written: Callable[[], None],
    ) -> None:
        error: BaseException | None = None
        try:
            run(_written(copies, transaction))
        except BaseException as e:
            error = e
        on_written()
        try:
            group.report("written", error)
            if group.rank == 0:
                error = self._finish(group, callback, error)
                group.share("committed", error=error)
            elif error is None:
                group.share("committed")
        except BaseException as e:
            error = error or e
        self._error = error

    def _finish(
        self, group: Group, callback: Callable[[], None] | None, error: BaseException | None
    ) -> BaseException | None:
        try:
            if error is None:
                group.collect("written")
                if callback is not None:
                    callback()
        except BaseException as e:
            return e
        return error

    def serialize_with_paths(
        self,
        arrays: Sequence[Array],
        paths: Sequence[str | os.PathLike[str]],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """As :meth:`serialize`, with a path for each array instead of a spec."""
        specs = [get_tensorstore_spec(p) for p in paths]
        self.serialize(
            arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction
        )

    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """Read arrays, after the last write; arguments as for :func:`run_deserialization`."""
        self.wait_until_finished()
        return run_deserialization(
            shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb
        )

    def deserialize_with_paths(
        self,
        shardings: Sequence[Any],
        paths: Sequence[str | os.PathLike[str]],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """As :meth:`deserialize`, with a path for each array instead of a spec."""
        specs = [get_tensorstore_spec(p) for p in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)
