"""The current mesh of a thread: ``set_mesh``, ``use_abstract_mesh``, ``with mesh:``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from primax_core.extend.runtime import default_placement, register_mesh, register_sharding
from primax_core.extend.traces import current_trace

from ._abstract_mesh import AbstractMesh, empty_abstract_mesh
from ._mesh import Mesh, empty_mesh
from ._mesh_options import current_abstract_mesh, current_mesh, entered_mesh as _entered
from ._named import NamedSharding
from ._spec import UNCONSTRAINED, PartitionSpec, entry_of, trimmed


def get_mesh() -> Mesh:
    """The mesh that :func:`set_mesh` set in this thread; without one, a mesh with ``empty`` true.

    Raises:
      ValueError: in a traced function, which may not depend on devices; use
        :func:`get_abstract_mesh`.

    >>> get_mesh().empty
    True
    """
    if current_trace() is not None:
        raise ValueError(
            "get_mesh can only be used outside of jit and other transformations: a traced function "
            "may not depend on devices. Use get_abstract_mesh, which gives names, sizes and types "
            "of the axes"
        )
    return concrete_mesh()


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in effect, without its devices; without one, a mesh with ``empty`` true.

    It is the mesh of :func:`set_mesh` or of :func:`use_abstract_mesh`, whichever is inner.

    >>> with use_abstract_mesh(AbstractMesh((2,), ("x",))):
    ...     get_abstract_mesh().axis_names
    ('x',)
    """
    return current_abstract_mesh.value or empty_abstract_mesh


def concrete_mesh() -> Mesh:
    """The mesh that :func:`set_mesh` set in this thread, also in a traced function."""
    return current_mesh.value or empty_mesh


def entered_mesh() -> Mesh:
    """The mesh of the innermost ``with mesh:`` in this thread, or the empty one."""
    return _entered.value or empty_mesh


def mesh_of_specs() -> Mesh | AbstractMesh:
    """The mesh to which partition specs without a mesh refer.

    The mesh of :func:`set_mesh` if it is in effect; otherwise that of :func:`use_abstract_mesh`,
    then that of ``with mesh:``. It is empty if there is none.
    """
    abstract, concrete = get_abstract_mesh(), concrete_mesh()
    if not abstract.empty:
        return concrete if concrete.abstract_mesh is abstract else abstract
    return concrete if not concrete.empty else entered_mesh()


def sharding_of_spec(spec: PartitionSpec) -> NamedSharding:
    """The sharding that a partition spec means in place of one: over the mesh in effect.

    Raises:
      ValueError: if there is no mesh.
    """
    mesh = mesh_of_specs()
    if mesh.empty:
        raise ValueError(
            f"{spec} was passed in place of a sharding, but no mesh is set. Set one with "
            "`with set_mesh(mesh):`, or pass NamedSharding(mesh, spec)"
        )
    return NamedSharding(mesh, spec)


def sharding_over(
    mesh: Mesh | AbstractMesh, entries: Sequence[Any], memory_kind: str | None
) -> NamedSharding:
    """The sharding over a mesh that an exported function has.

    Args:
      entries: for each axis of an array a tuple of mesh axes, ``None`` if it is unconstrained.
    """
    spec = [UNCONSTRAINED if names is None else entry_of(names) for names in entries]
    return NamedSharding(mesh, PartitionSpec(*trimmed(spec)), memory_kind=memory_kind)


register_sharding(PartitionSpec, sharding_of_spec)
register_mesh(Mesh, sharding_over)
register_mesh(AbstractMesh, sharding_over)


class set_mesh:
    """Set the mesh of this thread, from now on or for a ``with`` block.

    Partition specs without a mesh refer to it, and operations on arrays of explicit axes need it.
    The mesh is set when the object is created; leaving a ``with`` block sets the previous one
    again.

    Args:
      mesh: a :class:`Mesh`; ``None`` for none.

    Raises:
      ValueError: if it is something else, or in a traced function.

    >>> from primax_distributed import make_mesh
    >>> with set_mesh(make_mesh((1,), ("x",))):
    ...     get_abstract_mesh().axis_names
    ('x',)
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is None:
            mesh = empty_mesh
        if not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh needs a Mesh, got {mesh!r} of type {type(mesh).__name__}. For a mesh "
                "without devices see use_abstract_mesh"
            )
        _check_not_traced()
        self._mesh = mesh
        self._stack: ExitStack | None = None
        self._set()

    def _set(self) -> None:
        self._stack = ExitStack()
        self._stack.enter_context(current_mesh(self._mesh))
        self._stack.enter_context(current_abstract_mesh(self._mesh.abstract_mesh))
        everywhere = None if self._mesh.empty else NamedSharding(self._mesh, PartitionSpec())
        self._stack.enter_context(default_placement(everywhere))

    def __enter__(self) -> None:
        if self._stack is None:
            _check_not_traced()
            self._set()

    def __exit__(self, *exc_info: object) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()


def _check_not_traced() -> None:
    if current_trace() is not None:
        raise ValueError(
            "set_mesh can only be used outside of jit and other transformations: call the traced "
            "function in `with set_mesh(mesh):`, or see use_abstract_mesh"
        )


class use_abstract_mesh:
    """Use a mesh without devices in a ``with`` block, also in traced functions.

    Args:
      mesh: an :class:`AbstractMesh`.

    Raises:
      ValueError: if it is something else; on entry, if it has another number of devices than the
        mesh in effect.

    >>> with use_abstract_mesh(AbstractMesh((2, 4), ("x", "y"))):
    ...     get_abstract_mesh().shape["y"]
    4
    """

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(
                f"use_abstract_mesh needs an AbstractMesh, got {mesh!r} of type "
                f"{type(mesh).__name__}. A Mesh has one as its attribute abstract_mesh"
            )
        self.mesh: AbstractMesh = mesh
        self._override = current_abstract_mesh(mesh)

    def __enter__(self) -> None:
        previous = get_abstract_mesh()
        if not previous.empty and not self.mesh.empty and previous.size != self.mesh.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the number of devices: {self.mesh} has "
                f"{self.mesh.size}, and the mesh in effect, {previous}, has {previous.size}"
            )
        self._override.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        self._override.__exit__(*exc_info)
