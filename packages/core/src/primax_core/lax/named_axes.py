"""Named axes: the index along an axis, and casts of values over an axis."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._base import pytree
from .._base.pytree import PyTree
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch
from .._ir.samples import f32
from .._trace.axes import axis_size_in_scope, owner_of
from .arithmetic import add, mul
from .axis_binding import AxisName, axis_size, bind, names_of
from .broadcasting import iota
from .collective_rules import collective_samples, lower_over_mesh, uses_axes

axis_index_p: Final = Primitive("axis_index")

_CAST: Final = ("varying", "reduced", "unreduced")


def axis_index(axis_name: AxisName) -> Any:
    """Index of the current example or device along a named axis.

    Args:
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.

    Returns:
      A scalar of dtype ``int32``, from 0 to ``axis_size(axis_name) - 1``. Over several axes it
      counts in row-major order.

    Raises:
      NameError: if no enclosing transformation binds the axis.

    The result is not a Python integer: it differs between examples. It has no derivative.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: axis_index("i"), axis_name="i")(np.zeros(3)).tolist()
    [0, 1, 2]
    """
    names = names_of(axis_name)
    index: Any = None
    for n in names:
        size = axis_size_in_scope(n)
        here = bind(axis_index_p, (), (n,))
        index = here if index is None else add(mul(index, np.int32(size)), here)
    return index


def pcast(x: PyTree, axis_name: AxisName, *, to: str) -> Any:
    """The same values, with another type over a named axis of a mesh.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      to: ``"varying"`` (each device has its own values), ``"reduced"`` or ``"unreduced"`` (the
        values are the sum over the devices).

    Returns:
      A pytree with the values of ``x``. Over axes of ``vmap`` they are returned unchanged.

    Raises:
      ValueError: if ``to`` is not ``"varying"``, ``"reduced"`` or ``"unreduced"``.
      NameError: if no enclosing transformation binds the axis.

    The transpose of a cast to ``"varying"`` is a sum over the axis.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: pcast(x, "i", to="varying"), axis_name="i")(np.array([1, 2])).tolist()
    [1, 2]
    """
    if to not in _CAST:
        raise ValueError(f"Got unexpected `to` value. Allowed `to` values are: {_CAST}, got {to!r}")
    names = names_of(axis_name)
    axis_size(names)
    for owner in dict.fromkeys(owner_of((n,)) for n in names):
        if owner is not None:
            part = tuple([n for n in names if owner_of((n,)) is owner])
            x = pytree.tree_map(lambda v, o=owner, p=part: o.cast(v, p, to), x)
    return x


uses_axes(axis_index_p)
lower_over_mesh(axis_index_p)


@axis_index_p.rule(abstract)
def _axis_index_abstract(*, axis_name):
    return ShapedArray((), np.dtype(np.int32))


@axis_index_p.rule(batch)
def _axis_index_batch(axis, args, dims, *, axis_name):
    if axis_name != axis.name:
        return axis_index_p.bind(axis_name=axis_name), None
    return iota(np.int32, axis.size), 0


collective_samples(axis_index_p, lambda x: x * axis_index("i"), f32(2, 3), f32(3))
