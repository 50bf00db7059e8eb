"""Cores of a device that run one kernel: their axis, its indices, and barriers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax_core import default_backend, lax
from primax_core.extend import (
    AbstractRef,
    Primitive,
    current_trace,
    typeof,
)
from primax_core.extend.traces import AxisOwner, named_axes

from ._barriers import core_barrier_p
from ._control import when
from ._semaphores import SemaphoreType
from ._tpu_info import get_tpu_info
from ._typing import Reference


def _default_cores() -> int:
    return get_tpu_info().num_cores if default_backend() == "tpu" else 1


class TensorCoreMesh:
    """The tensor cores of one device, for `primax_kernels.kernel`.

    Args:
      axis_name: name of the axis of cores, for ``lax.axis_index`` inside of the kernel.
      num_cores: number of cores, by default those of the TPU, and one on other platforms.

    Raises:
      TypeError: if the name is no string or the number no integer.
      ValueError: if the number is not positive.

    >>> dict(TensorCoreMesh(axis_name="core", num_cores=2).shape)
    {'core': 2}
    """

    __slots__ = ("axis_name", "num_cores")

    axis_name: str
    num_cores: int

    def __init__(self, *, axis_name: str, num_cores: int | None = None):
        if not isinstance(axis_name, str):
            raise TypeError(f"the axis name of a mesh of cores is a string, got {axis_name!r}")
        if num_cores is None:
            num_cores = _default_cores()
        if not hasattr(num_cores, "__index__") or isinstance(num_cores, bool):
            raise TypeError(f"the number of cores is an integer, got {num_cores!r}")
        if num_cores < 1:
            raise ValueError(f"a mesh has at least one core, got {num_cores}")
        object.__setattr__(self, "axis_name", axis_name)
        object.__setattr__(self, "num_cores", int(num_cores))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"TensorCoreMesh is immutable: cannot set {name!r}; create another")

    @property
    def shape(self) -> OrderedDict[str, int]:
        """The number of cores, by the name of their axis."""
        return OrderedDict({self.axis_name: self.num_cores})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorCoreMesh) and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.axis_name, self.num_cores))

    def __repr__(self) -> str:
        return f"TensorCoreMesh(axis_name={self.axis_name!r}, num_cores={self.num_cores})"


def create_tensorcore_mesh(
    axis_name: str, devices: Any = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """The tensor cores of each device of one kind, as a `TensorCoreMesh`.

    Args:
      axis_name, num_cores: as of `TensorCoreMesh`.
      devices: the devices whose number of cores is the default; those of the default backend.

    Raises:
      ValueError: if the devices are of several kinds.

    >>> create_tensorcore_mesh("core", num_cores=2)
    TensorCoreMesh(axis_name='core', num_cores=2)
    """
    if devices is not None:
        kinds = sorted({d.device_kind for d in devices})
        if len(kinds) != 1:
            raise ValueError(f"a mesh of tensor cores has devices of one kind, got {kinds}")
        if num_cores is None and devices[0].platform != "tpu":
            num_cores = 1
    return TensorCoreMesh(axis_name=axis_name, num_cores=num_cores)


# The axis of cores


class NeedsPhases(Exception):
    """The kernel has a barrier: no core may be finished before another one starts."""


@dataclass
class _Core:
    """The core that a kernel is traced for, or runs on.

    Attributes:
      index: its index, an ``int32`` scalar.
      in_phases: whether barriers divide the kernel, so that cores take turns.
    """

    mesh: TensorCoreMesh
    index: Any
    in_phases: bool


class _Cores(threading.local):
    def __init__(self) -> None:
        self.stack: list[_Core] = []


_cores = _Cores()


class _CoreAxisOwner(AxisOwner):
    """Binds ``lax.axis_index`` over the axis of cores."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is _CoreAxisOwner and other.name == self.name

    def __hash__(self) -> int:
        return hash((_CoreAxisOwner, self.name))

    def bind(
        self, prim: Primitive, args: Sequence[Any], params: dict[str, Any], to: str = "varying"
    ) -> Any:
        """The index of the core; other collectives are refused."""
        if prim is lax.axis_index_p:
            return _cores.stack[-1].index
        raise ValueError(
            f"{prim.name} over the axis {self.name!r} of cores inside of a kernel: write the "
            "values into an array that all cores see, and read them after tpu.core_barrier"
        )

    def cast(self, x: Any, names: tuple[Any, ...], to: str) -> Any:
        """The value itself: types inside of kernels do not say how cores differ."""
        return x


@contextmanager
def on_core(mesh: TensorCoreMesh, index: Any, in_phases: bool = False) -> Iterator[None]:
    """Bind the axis of a mesh to the index of a core.

    Args:
      in_phases: whether `core_barrier` may divide the kernel.
    """
    _cores.stack.append(_Core(mesh, index, in_phases))
    try:
        with named_axes({mesh.axis_name: mesh.num_cores}, _CoreAxisOwner(mesh.axis_name)):
            yield
    finally:
        _cores.stack.pop()


def _core(function: str, axis_name: Any) -> _Core:
    for core in reversed(_cores.stack):
        if core.mesh.axis_name == axis_name:
            return core
    named = ", ".join(repr(c.mesh.axis_name) for c in _cores.stack) or "none"
    raise NameError(
        f"{function} over the axis {axis_name!r}: the axes of cores here are {named}; pass "
        f"mesh=tpu.TensorCoreMesh(axis_name={axis_name!r}) to the kernel"
    )


def core_of(axis_name: str) -> tuple[Any, int]:
    """The index of the core along an axis of cores, and the number of cores.

    Raises:
      NameError: if no kernel around has the axis.
    """
    core = _core("emit_pipeline", axis_name)
    return core.index, core.mesh.num_cores


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Decorator that runs a function without arguments on core 0 only.

    Args:
      core_axis_name: the axis of cores.

    Raises:
      NameError: if no kernel around has the axis.
      TypeError: if the function returns a value.
    """
    core = _core("run_on_first_core", core_axis_name)
    if core.mesh.num_cores == 1:
        return when(True)
    return when(lax.eq(core.index, np.int32(0)))


# Barriers


def core_barrier(sem: Reference, *, core_axis_name: str) -> None:
    """Wait until all cores of a mesh have arrived here.

    Writes of a core before the barrier are seen by all cores after it. The barrier divides
    the kernel: on CPUs and GPUs each core runs up to the barrier, then each core goes on. It may be
    in ``fori_loop``, ``while_loop`` and ``loop``, whose numbers of steps all cores share, and not
    in conditions.

    Args:
      sem: a regular semaphore, whose count is 0 before and after.
      core_axis_name: the axis of cores.

    Raises:
      NameError: if no kernel around has the axis.
      TypeError: if ``sem`` is no semaphore.
      ValueError: inside of a condition, or of a ``scan`` over arrays.
    """
    core = _core("core_barrier", core_axis_name)
    aval, traced = typeof(sem), current_trace() is not None
    space = getattr(aval, "memory_space", None)
    if not isinstance(aval, AbstractRef) or (traced and space is not SemaphoreType.REGULAR):
        raise TypeError(
            "core_barrier takes a semaphore, such as of the scratch type SemaphoreType.REGULAR, "
            f"got {aval}"
        )
    if core.mesh.num_cores == 1:
        return
    if not core.in_phases:
        raise NeedsPhases
    core_barrier_p.bind(axis_name=core_axis_name)
