"""Gathers along named axes, and their transposes, which add and divide (``psum_scatter``)."""

from __future__ import annotations

from typing import Any, Final

from .._base import pytree
from .._base.pytree import PyTree
from .._ir.primitive import Primitive, abstract
from .._ir.samples import f32
from .._trace.core import typeof
from .axis_binding import (
    AxisName,
    Groups,
    are_joint,
    axis_size,
    bind,
    checked_groups,
    names_of,
)
from .collective_rules import (
    collective_samples,
    linear,
    lower_over_mesh,
    mapped,
    moveaxis,
    uses_axes,
)
from .reducing import reduce_sum
from .reshaping import reshape
from .shapes import canonical_axis
from .slicing import index_in_dim

all_gather_p: Final = Primitive("all_gather")
reduce_scatter_p: Final = Primitive("reduce_scatter")

_GATHERED: Final = ("varying", "invarying", "reduced")


def all_gather(
    x: PyTree, axis_name: AxisName, *, axis_index_groups: Groups = None, axis: int = 0,
    tiled: bool = False, to: str = "varying",
) -> Any:  # fmt: skip
    """Values of all indices along a named axis, stacked or concatenated.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      axis_index_groups: a partition of the indices into groups that are combined separately. It
        is supported over mesh axes, not over axes of ``vmap``.
      axis: the axis of the result along which the values are stacked; a negative one counts from
        the end.
      tiled: concatenate the values along the existing axis ``axis`` instead of stacking them
        along a new one.
      to: the type of the result over mesh axes: ``"varying"``, ``"invarying"`` or ``"reduced"``.
        It has no effect over axes of ``vmap``.

    Returns:
      A pytree of arrays, the same at every index.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      ValueError: if ``to`` has another value, the axis is out of range, or the groups have
        different sizes.
      NotImplementedError: for groups over axes of ``vmap``.

    The function is linear; its transpose is :func:`psum_scatter`.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.array([1, 2])).tolist()
    [[1, 2], [1, 2]]
    """
    if to not in _GATHERED:
        raise ValueError(
            f"Got unexpected `to` value {to!r} for all_gather; it is one of {_GATHERED}"
        )
    names = names_of(axis_name)
    size = axis_size(names)
    groups = checked_groups("all_gather", axis_index_groups, names, equal=True)
    size = size if groups is None else len(groups[0])

    def one(v):
        rank = typeof(v).ndim + (0 if tiled else 1)
        dim = canonical_axis(axis, rank, "all_gather axis")
        if not are_joint(names):
            from . import several_axes

            return several_axes.all_gather(
                lambda x, name, a, tiled: all_gather(x, name, axis=a, tiled=tiled, to=to),
                v, names, dim, tiled,
            )  # fmt: skip
        return bind(
            all_gather_p, (v,), names, to, all_gather_dimension=dim, axis_index_groups=groups,
            axis_size=size, tiled=tiled,
        )  # fmt: skip

    return pytree.tree_map(one, x)


def pbroadcast(x: PyTree, axis_name: AxisName, source: int) -> Any:
    """Send the value of one index along a named axis to every index.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      source: the index, a Python integer.

    Returns:
      A pytree with the shapes and dtypes of ``x``.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      ValueError: if ``source`` is out of range.

    The function is linear: the cotangents of all indices are added at the source.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(np.array([1, 2, 3])).tolist()
    [2, 2, 2]
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast source must lie in [0, {size}), got {source}")
    return pytree.tree_map(
        lambda v: index_in_dim(all_gather(v, axis_name), source, 0, keepdims=False), x
    )


def psum_scatter(
    x: PyTree, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Any:  # fmt: skip
    """Sum over a named axis, divided: index ``i`` receives part ``i`` of the sum.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      scatter_dimension: the axis of the arrays that is divided. Its size is the axis size, or
        with ``tiled`` a multiple of it.
      axis_index_groups: a partition of the indices into groups that are combined separately. It
        is supported over mesh axes, not over axes of ``vmap``.
      tiled: divide the axis into blocks. Otherwise each index receives one slice, without the
        axis.

    Returns:
      A pytree of arrays.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      ValueError: if the axis is out of range or its size does not fit.
      NotImplementedError: for groups over axes of ``vmap``.

    The function is linear; its transpose is :func:`all_gather`.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> x = np.array([[1, 2], [3, 4]])
    >>> vmap(lambda row: psum_scatter(row, "i"), axis_name="i")(x).tolist()
    [4, 6]
    """
    names = names_of(axis_name)
    size = axis_size(names)
    groups = checked_groups("psum_scatter", axis_index_groups, names, equal=True)
    size = size if groups is None else len(groups[0])

    def one(v):
        shape = typeof(v).shape
        dim = canonical_axis(scatter_dimension, len(shape), "psum_scatter scatter_dimension")
        n = shape[dim]
        if n % size if tiled else n != size:
            raise ValueError(
                f"psum_scatter: axis {dim} of size {n} cannot be divided over the "
                f"named axis {axis_name} of size {size}"
            )
        if not are_joint(names):
            from . import several_axes

            return several_axes.psum_scatter(
                lambda x, name, d, tiled: psum_scatter(x, name, scatter_dimension=d, tiled=tiled),
                v, names, [axis_size(n) for n in names], dim, tiled,
            )  # fmt: skip
        return bind(
            reduce_scatter_p, (v,), names, axis_index_groups=groups, axis_size=size,
            scatter_dimension=dim, tiled=tiled,
        )  # fmt: skip

    return pytree.tree_map(one, x)


class Future:
    """The pending result of a collective; :meth:`done` waits for it."""

    __slots__ = ("_result",)

    def __init__(self, result: Any):
        self._result = result

    def done(self) -> Any:
        """The result."""
        return self._result

    def __repr__(self) -> str:
        return f"Future({self._result!r})"


pytree.register_pytree_node(
    Future, lambda f: ((f._result,), None), lambda _, children: Future(*children)
)


def psum_scatter_start(*args: Any, **kwargs: Any) -> Future:
    """Start a :func:`psum_scatter`; ``.done()`` of the returned object is the result.

    The compiler can overlap operations between the two calls with the collective.

    Args:
      args, kwargs: the arguments of :func:`psum_scatter`.

    Returns:
      An object with the method ``done``, which returns the sums. It is a pytree: loops and
      transformations may carry it.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      ValueError: if the divided axis is out of range or its size does not fit.

    Derivatives and batches are those of :func:`psum_scatter`.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> x = np.array([[1, 2], [3, 4]])
    >>> vmap(lambda row: psum_scatter_start(row, "i").done(), axis_name="i")(x).tolist()
    [4, 6]
    """
    return Future(psum_scatter(*args, **kwargs))


@all_gather_p.rule(abstract)
def _all_gather_abstract(x, *, all_gather_dimension, axis_size, tiled, **_):
    d = all_gather_dimension
    if tiled:
        return x.update(shape=(*x.shape[:d], x.shape[d] * axis_size, *x.shape[d + 1 :]))
    return x.update(shape=(*x.shape[:d], axis_size, *x.shape[d:]))


@reduce_scatter_p.rule(abstract)
def _reduce_scatter_abstract(x, *, scatter_dimension, axis_size, tiled, **_):
    shape = list(x.shape)
    if tiled:
        shape[scatter_dimension] //= axis_size
    else:
        del shape[scatter_dimension]
    return x.update(shape=tuple(shape))


for _p in (all_gather_p, reduce_scatter_p):
    uses_axes(_p)
    lower_over_mesh(_p)
linear(
    all_gather_p,
    lambda ct, x, *, all_gather_dimension, **params: reduce_scatter_p.bind(
        ct, scatter_dimension=all_gather_dimension, **params
    ),
)
linear(
    reduce_scatter_p,
    lambda ct, x, *, scatter_dimension, **params: all_gather_p.bind(
        ct, all_gather_dimension=scatter_dimension, **params
    ),
)


def _all_gather(x, axis, *, all_gather_dimension, axis_size, tiled, axis_index_groups):
    d = all_gather_dimension
    moved = moveaxis(x, 0, d)
    if tiled:
        shape = typeof(moved).shape
        moved = reshape(moved, (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :]))
    return moved, None


def _reduce_scatter(x, axis, *, scatter_dimension, axis_size, tiled, axis_index_groups):
    total = reduce_sum(x, (0,))
    d = scatter_dimension
    if tiled:
        shape = typeof(total).shape
        total = reshape(total, (*shape[:d], axis_size, shape[d] // axis_size, *shape[d + 1 :]))
    return total, d


mapped(all_gather_p, _all_gather, ("all_gather_dimension",))
mapped(reduce_scatter_p, _reduce_scatter, ("scatter_dimension",))
collective_samples(all_gather_p, lambda x: all_gather(x, "i"), f32(2, 3), f32(2))
collective_samples(reduce_scatter_p, lambda x: psum_scatter(x, "i"), f32(3, 3), f32(3, 2, 3))
