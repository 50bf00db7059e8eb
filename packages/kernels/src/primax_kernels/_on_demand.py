"""Memory that a kernel asks for while it runs, and that all steps share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from primax_core.extend import AbstractRef

from ._memory_spaces import scratch_type
from ._semaphores import SemaphoreType
from ._typing import HasShape


class NeedsMemory(Exception):
    """A kernel needs one more memory.

    Attributes:
      aval: the type of the reference to it.
    """

    def __init__(self, aval: AbstractRef):
        super().__init__(aval)
        self.aval = aval


class _Requests:
    """The requests of one step.

    Attributes:
      take: the function from the number of a request and its type to the reference.
      refs: the references so far, by tag, or by their number.
    """

    def __init__(self, take: Callable[[int, AbstractRef], Any]):
        self.take = take
        self.refs: dict[Hashable, Any] = {}


class _Stack(threading.local):
    def __init__(self) -> None:
        self.stack: list[_Requests] = []


_requests = _Stack()


@contextmanager
def memory_from(take: Callable[[int, AbstractRef], Any]) -> Iterator[None]:
    """Answer requests for memory by a function of their number and type, counted from here."""
    _requests.stack.append(_Requests(take))
    try:
        yield
    finally:
        _requests.stack.pop()


def references_in(refs: Sequence[Any]) -> Callable[[int, AbstractRef], Any]:
    """Requests answered by references in order.

    The function raises `NeedsMemory` if there are too few.
    """

    def take(number: int, aval: AbstractRef) -> Any:
        if number == len(refs):
            raise NeedsMemory(aval)
        return refs[number]

    return take


def requested(tag: Hashable) -> Any:
    """The reference of an earlier request in the kernel, or ``None``."""
    return _requests.stack[-1].refs.get(("tag", tag)) if _requests.stack else None


def request(function: str, aval: AbstractRef, tag: Hashable = None) -> Any:
    """A reference to memory that all steps share.

    Args:
      function: the caller, for errors.
      tag: requests with equal tags have the same memory.

    Raises:
      RuntimeError: outside of a kernel.
    """
    if not _requests.stack:
        raise RuntimeError(f"{function} is called outside of a kernel")
    requests = _requests.stack[-1]
    key = ("tag", tag) if tag is not None else len(requests.refs)
    if key not in requests.refs:
        requests.refs[key] = requests.take(len(requests.refs), aval)
    return requests.refs[key]


def get_global(what: HasShape | SemaphoreType) -> Any:
    """A reference to memory that all steps of a kernel share.

    It begins as other scratch memory: semaphores with 0. Each call in the kernel has its own
    memory, the same one in all steps.

    Args:
      what: the type of memory, such as ``SemaphoreType.REGULAR`` or ``VMEM((8, 128), float32)``.

    Raises:
      RuntimeError: outside of a kernel.
      TypeError: if ``what`` is no type of memory.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct
    >>> from primax_kernels import BlockSpec, pallas_call, semaphore_read, semaphore_signal
    >>> def kernel(out):
    ...     count = get_global(SemaphoreType.REGULAR)
    ...     out[0] = semaphore_read(count)
    ...     semaphore_signal(count, 2)
    >>> pallas_call(
    ...     kernel, ShapeDtypeStruct((3,), np.int32), grid=3, out_specs=BlockSpec((1,), lambda i: i)
    ... )()
    Array([0, 2, 4], dtype=int32)
    """
    return request("get_global", scratch_type(what))


def get_barrier_semaphore(tag: Hashable | None = None) -> Any:
    """The semaphore with which the devices that run the kernel wait for each other.

    It exists before the kernel starts, so that a device can signal that its memory is ready. The
    kernel has to wait until it is 0 again. On TPUs a kernel that communicates needs a number,
    ``CompilerParams(collective_id=...)``, which kernels with the same devices that run at one time
    do not share, and has one such semaphore.

    Args:
      tag: calls with equal tags in one kernel have the same semaphore; without, all calls.

    Raises:
      RuntimeError: outside of a kernel.
      TypeError: if ``tag`` cannot be hashed.
    """
    try:
        hash(tag)
    except TypeError:
        raise TypeError(f"the tag of a barrier semaphore is hashable, got {tag!r}") from None
    aval = SemaphoreType.BARRIER.get_ref_aval()
    return request("get_barrier_semaphore", aval, ("barrier", tag))
