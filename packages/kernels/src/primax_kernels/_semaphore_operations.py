"""Operations on semaphores: signals, also to other devices, and waits."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import dtypes, lax
from primax_core.extend import AbstractRef, Primitive, current_trace, expand, typeof
from primax_core.extend.references import RefView, get_p, swap_p

from ._access import atomic_add, described
from ._devices import DeviceIdType, logical_device
from ._remote_operations import bind_remote, remote_signal_p
from ._semaphores import COUNT, SemaphoreType
from ._typing import ArrayLike, DeviceId, Reference

semaphore_signal_p: Final[Primitive] = Primitive("semaphore_signal", multiple_results=True)
"""An addition to a semaphore; the semaphore is the first operand, and the number the second."""

semaphore_wait_p: Final[Primitive] = Primitive("semaphore_wait", multiple_results=True)
"""A wait until a semaphore has at least a number, which is then subtracted."""


@semaphore_signal_p.rule(expand)
def _signal(ref: Any, number: Any, *operands: Any, index: Any) -> list[Any]:
    old = get_p.bind(ref, *operands, index=index)
    swap_p.bind(ref, lax.add(old, number), *operands, index=index)
    return []


@semaphore_wait_p.rule(expand)
def _wait(ref: Any, number: Any, *operands: Any, index: Any, decrement: bool) -> list[Any]:
    return _signal(ref, lax.neg(number), *operands, index=index) if decrement else []


def check_semaphore(function: str, name: str, semaphore: Any, kind: SemaphoreType) -> None:
    """Check that an argument is one semaphore of a kind.

    Raises:
      TypeError: if it is something else, where its type is known.
      ValueError: for an array of semaphores.
    """
    base = semaphore.refs[0] if hasattr(semaphore, "refs") else semaphore
    while isinstance(base, RefView):
        base = base.base
    aval = typeof(base) if is_reference(base) else base
    space = getattr(aval, "memory_space", None)
    traced = current_trace() is not None
    if not isinstance(aval, AbstractRef) or (traced and space is not kind):
        raise TypeError(
            f"{function}: {name} is a semaphore of kind SemaphoreType.{kind.name}, got {aval}"
        )
    _check_is_one(f"{function} ({name})", semaphore)


def is_reference(x: Any) -> bool:
    """Return True for a reference, a view of one, or one that is chosen among several."""
    if hasattr(x, "refs"):
        return True
    while isinstance(x, RefView):
        x = x.base
    try:
        return isinstance(typeof(x), AbstractRef)
    except TypeError:
        return False


def _check_is_one(function: str, semaphore: Any) -> None:
    if not is_reference(semaphore):
        raise TypeError(
            f"{function} takes a semaphore, a reference to scratch memory of type "
            f"SemaphoreType.REGULAR, got {described(semaphore)}"
        )
    if semaphore.shape != ():
        raise ValueError(
            f"{function} takes one semaphore, got an array of shape {semaphore.shape}: choose one "
            "by an index, such as semaphores.at[0]"
        )


def _number(function: str, x: Any) -> Any:
    aval = typeof(x)
    if aval.shape != () or not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"{function} takes an integer scalar, got {aval}")
    return lax.convert_element_type(x, COUNT)


def semaphore_read(sem_or_view: Reference) -> Any:
    """The count of a semaphore, an ``int32`` scalar.

    Raises:
      TypeError: if it is no reference.
      ValueError: for an array of semaphores.
    """
    _check_is_one("semaphore_read", sem_or_view)
    return sem_or_view[...] if not hasattr(sem_or_view, "get") else sem_or_view.get()


def semaphore_signal(
    sem_or_view: Reference,
    inc: ArrayLike = 1,
    *,
    device_id: DeviceId | None = None,
    device_id_type: DeviceIdType | str | None = None,
    core_index: None = None,
) -> None:
    """Add ``inc`` to a semaphore.

    Args:
      sem_or_view: a semaphore, or a view of an array of them.
      inc: an integer scalar.
      device_id: the device whose semaphore it is, in the forms of `tpu.make_async_remote_copy`; by
        default this one. The conditions of that function apply.
      device_id_type: a `DeviceIdType`; by default ``MESH``.
      core_index: not supported: cores wait for each other by `tpu.core_barrier`.

    Raises:
      TypeError: if ``inc`` is no integer scalar, or the semaphore no reference; for a semaphore of
        copies and a device.
      ValueError: for an array of semaphores, or a device that the mesh does not have.
      RuntimeError: for a device, if the kernel is not called inside of a ``shard_map``.
      NotImplementedError: for the semaphore of another core.
    """
    if core_index is not None:
        raise NotImplementedError(
            "semaphore_signal to another core: cores wait for each other by tpu.core_barrier"
        )
    _check_is_one("semaphore_signal", sem_or_view)
    number = _number("semaphore_signal", inc)
    if device_id is not None:
        _check_remote(sem_or_view)
        device, mesh = logical_device("semaphore_signal", device_id, device_id_type)
        bind_remote(
            remote_signal_p, "semaphore_signal", [sem_or_view], number, device, mesh=mesh
        )  # fmt: skip
    elif not _bind(semaphore_signal_p, sem_or_view, number):
        atomic_add(sem_or_view, ..., number)


def _check_remote(semaphore: Any) -> None:
    base = semaphore.base if isinstance(semaphore, RefView) else semaphore
    kinds = (SemaphoreType.REGULAR, SemaphoreType.BARRIER)
    space = getattr(typeof(base), "memory_space", None)
    if current_trace() is not None and space not in kinds:
        raise TypeError(
            "semaphore_signal to another device takes a semaphore of kind SemaphoreType.REGULAR, "
            f"or that of get_barrier_semaphore, got {typeof(base)}"
        )


def _bind(prim: Primitive, semaphore: Any, number: Any, **params: Any) -> bool:
    """Apply a primitive to a semaphore while a kernel is traced; False if there is none."""
    view = semaphore if isinstance(semaphore, RefView) else None
    if current_trace() is None or (view is not None and isinstance(view.base, RefView)):
        return False
    if view is None:
        view = RefView(semaphore, ...)
    prim.bind(view.base, number, *view.operands, index=view.index, **params)
    return True


def semaphore_wait(sem_or_view: Reference, value: ArrayLike = 1, *, decrement: bool = True) -> None:
    """Wait until a semaphore has at least ``value``, then subtract it.

    Steps on a CPU run one after the other, so a semaphore has its value by then, or never gets it.

    Args:
      sem_or_view: a semaphore, or a view of an array of them.
      value: an integer scalar.
      decrement: whether to subtract.

    Raises:
      TypeError: if ``value`` is no integer scalar, or the semaphore no reference.
      ValueError: for an array of semaphores.
    """
    _check_is_one("semaphore_wait", sem_or_view)
    number = _number("semaphore_wait", value)
    if not _bind(semaphore_wait_p, sem_or_view, number, decrement=decrement) and decrement:
        atomic_add(sem_or_view, ..., lax.neg(number))
