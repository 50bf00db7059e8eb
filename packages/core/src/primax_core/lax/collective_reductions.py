"""Reductions over named axes: sums, means, maxima and minima.

Over an axis that ``vmap`` maps, they become ordinary reductions of the whole batch. Over the axes
of a mesh, their owner (``AxisOwner``) binds them, and ``mesh_collectives`` lowers them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._base import pytree
from .._base.pytree import PyTree
from .._ir.primitive import Primitive, abstract, batch, jvp
from .._ir.samples import c64, f32, i32, u8
from .._ir.symbolic_dims import is_symbolic_dim
from .._trace.core import typeof
from .arithmetic import div, mul
from .axis_binding import (
    AxisName,
    Groups,
    axis_size,
    bind_reduction,
    checked_groups,
    group_size,
    names_of,
)
from .collective_rules import collective_samples, linear, lower_over_mesh, uses_axes
from .conversion import convert_element_type
from .elementwise import scalar_like
from .reducing import reduce_max, reduce_min, reduce_sum

psum_p: Final = Primitive("psum", multiple_results=False)
pmax_p: Final = Primitive("pmax")
pmin_p: Final = Primitive("pmin")


def psum(x: PyTree, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
    """Sum over a named axis; the result is the same at every index.

    Args:
      x: a pytree of arrays and numbers. A Python number is multiplied by the axis size, without a
        collective; booleans are summed as ``int32``.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      axis_index_groups: a partition of the indices into groups that are combined separately. It
        is supported over mesh axes, not over axes of ``vmap``.

    Returns:
      A pytree of sums with the shapes of ``x``.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      NotImplementedError: for groups over axes of ``vmap``.

    The function is linear: over an axis of ``vmap`` the cotangents of all examples are added too.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: x / psum(x, "i"), axis_name="i")(np.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    >>> vmap(lambda x: x * psum(1, "i"), axis_name="i")(np.array([1.0, 3.0])).tolist()
    [2.0, 6.0]
    """
    names = names_of(axis_name)
    size = axis_size(names)
    groups = checked_groups("psum", axis_index_groups, names)

    def one(leaf):
        if isinstance(leaf, (int, float, complex)) and not isinstance(leaf, bool):
            return leaf * (group_size("psum of a number", groups) if groups else size)
        if typeof(leaf).dtype == np.bool_:
            leaf = convert_element_type(leaf, np.int32)
        return bind_reduction(psum_p, leaf, names, groups)

    return pytree.tree_map(one, x)


def pmean(x: PyTree, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
    """Mean over a named axis; the result is the same at every index.

    Args:
      x: a pytree of arrays and numbers. Integers and booleans become floats.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      axis_index_groups: a partition of the indices into groups that are combined separately. It
        is supported over mesh axes, not over axes of ``vmap``.

    Returns:
      A pytree of means with the shapes of ``x``: the sums of :func:`psum`, divided by the axis
      size.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      NotImplementedError: for groups over axes of ``vmap``.

    The function is linear, like :func:`psum`.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: x - pmean(x, "i"), axis_name="i")(np.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    size = axis_size(axis_name)
    if axis_index_groups is not None:
        groups = checked_groups("pmean", axis_index_groups, names_of(axis_name))
        size = group_size("pmean", groups)
    return pytree.tree_map(
        lambda s: _divide(s, size), psum(x, axis_name, axis_index_groups=axis_index_groups)
    )


def _divide(x, n: int):
    if isinstance(x, (int, float, complex)):
        return x / n
    aval = typeof(x)
    if not np.issubdtype(aval.dtype, np.inexact) and aval.dtype.kind in "iub":
        x = convert_element_type(x, np.float32 if aval.dtype.itemsize <= 4 else np.float64)
    size = convert_element_type(n, typeof(x).dtype) if is_symbolic_dim(n) else scalar_like(x, n)
    return div(x, size)


def pmax(x: PyTree, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
    """Maximum over a named axis; the result is the same at every index.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      axis_index_groups: a partition of the indices into groups that are combined separately. It
        is supported over mesh axes, not over axes of ``vmap``.

    Returns:
      A pytree of maxima with the shapes of ``x``.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      NotImplementedError: for groups over axes of ``vmap``, and if a maximum over mesh axes is
        differentiated: take the maximum of :func:`all_gather` instead.

    Over an axis of ``vmap`` the derivative is that of the maximum; equal maxima share it.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: pmax(x, "i"), axis_name="i")(np.array([1.0, 3.0])).tolist()
    [3.0, 3.0]
    """
    names = names_of(axis_name)
    axis_size(names)
    groups = checked_groups("pmax", axis_index_groups, names)
    return pytree.tree_map(lambda v: bind_reduction(pmax_p, v, names, groups), x)


def pmin(x: PyTree, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
    """Minimum over a named axis; the result is the same at every index.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      axis_index_groups: a partition of the indices into groups that are combined separately. It
        is supported over mesh axes, not over axes of ``vmap``.

    Returns:
      A pytree of minima with the shapes of ``x``.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      NotImplementedError: for groups over axes of ``vmap``, and if a minimum over mesh axes is
        differentiated: take the minimum of :func:`all_gather` instead.

    Over an axis of ``vmap`` the derivative is that of the minimum; equal minima share it.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: pmin(x, "i"), axis_name="i")(np.array([1.0, 3.0])).tolist()
    [1.0, 1.0]
    """
    names = names_of(axis_name)
    axis_size(names)
    groups = checked_groups("pmin", axis_index_groups, names)
    return pytree.tree_map(lambda v: bind_reduction(pmin_p, v, names, groups), x)


for _p in (psum_p, pmax_p, pmin_p):
    _p.rule(abstract)(lambda x, *, axes, axis_index_groups: x)
    uses_axes(_p, "axes")
    lower_over_mesh(_p)
linear(psum_p, lambda ct, x, **params: psum_p.bind(ct, **params))
for _p in (pmax_p, pmin_p):
    _p.unsupported(jvp, f"Differentiation rule for '{_p.name}' not implemented: use all_gather")


def _reduction(prim: Primitive, reduce: Callable, of_constant: Callable) -> None:
    @prim.rule(batch)
    def _batch(axis, args, dims, *, axes, axis_index_groups):
        (x,), (d,) = args, dims
        rest = tuple(a for a in axes if a != axis.name)
        if len(rest) < len(axes):
            x = of_constant(x, axis.size) if d is None else reduce(x, (d,))
            d = None
        if rest:
            x = prim.bind(x, axes=rest, axis_index_groups=axis_index_groups)
        return x, d


_reduction(psum_p, reduce_sum, lambda x, n: mul(x, np.asarray(n, typeof(x).dtype)[()]))
_reduction(pmax_p, reduce_max, lambda x, n: x)
_reduction(pmin_p, reduce_min, lambda x, n: x)
collective_samples(psum_p, lambda x: psum(x, "i"), f32(2, 3), c64(3), i32(2))
collective_samples(pmax_p, lambda x: pmax(x, "i"), i32(2, 3), u8(3))
collective_samples(pmin_p, lambda x: pmin(x, "i"), i32(2, 3), u8(3))
