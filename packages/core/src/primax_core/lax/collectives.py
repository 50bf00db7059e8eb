"""Collectives: operations over named axes.

Over an axis that ``vmap`` maps, they become ordinary operations on the whole batch. Over the axes
of a mesh, their owner (``AxisOwner``) binds them, and ``mesh_collectives`` lowers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from .._base import pytree
from .._ir.avals import ShapedArray
from .._ir.effects import NamedAxisEffect
from .._ir.primitive import Primitive, abstract, batch, effects, jvp, lower, transpose
from .._ir.samples import Sample, c64, f32, i32, samples, u8
from .._ir.symbolic_dims import is_symbolic_dim
from .._trace.axes import axis_size_in_scope, owner_of
from .._trace.core import typeof
from .._transform.batching import Axis, at_front, batch_of
from .._transform.zeros import Zero, instantiate
from .arithmetic import add, div, mul
from .axis_binding import (
    AxisName,
    Groups,
    are_joint,
    axis_size as axis_size,
    bind,
    bind_reduction,
    checked_groups,
    group_size,
    names_of,
)
from .broadcasting import broadcast_in_dim, iota
from .conversion import convert_element_type
from .elementwise import scalar_like
from .joining import concatenate
from .permuting import transpose as transpose_array
from .reducing import reduce_max, reduce_min, reduce_sum
from .reshaping import reshape
from .shapes import canonical_axis
from .slicing import index_in_dim

psum_p: Final = Primitive("psum", multiple_results=False)
pmax_p: Final = Primitive("pmax")
pmin_p: Final = Primitive("pmin")
ppermute_p: Final = Primitive("ppermute")
all_gather_p: Final = Primitive("all_gather")
all_to_all_p: Final = Primitive("all_to_all")
reduce_scatter_p: Final = Primitive("reduce_scatter")
axis_index_p: Final = Primitive("axis_index")


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


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
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


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
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


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
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


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Any:
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


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along a named axis, from sources to destinations.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      perm: pairs ``(source, destination)`` of indices. An index is the source of at most one
        pair, and the destination of at most one.

    Returns:
      A pytree with the shapes and dtypes of ``x``. Indices that are no destination receive zeros.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      ValueError: if a source or destination appears twice or is out of range.
      TypeError: if ``perm`` does not consist of pairs.

    The function is linear; its transpose sends cotangents in the opposite direction.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> shift = lambda x: ppermute(x, "i", [(0, 1), (1, 2)])
    >>> vmap(shift, axis_name="i")(np.array([1.0, 2.0, 3.0])).tolist()
    [0.0, 1.0, 2.0]
    """
    try:
        pairs = tuple([(int(s), int(d)) for s, d in perm])
    except TypeError:
        raise TypeError(
            f"ppermute perm must be a list of pairs (source, destination), got {perm!r}"
        ) from None
    size = axis_size(axis_name)
    for part, what in (([s for s, _ in pairs], "sources"), ([d for _, d in pairs], "destinations")):
        if len(set(part)) != len(part):
            raise ValueError(f"ppermute {what} must be unique, got {perm}")
        if any(not 0 <= i < size for i in part):
            raise ValueError(f"ppermute {what} must lie in [0, {size}), got {perm}")
    names = names_of(axis_name)
    return pytree.tree_map(lambda v: bind(ppermute_p, (v,), names, perm=pairs), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """Permute values along a named axis: index ``i`` receives the value of index ``perm[i]``.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      perm: a permutation of the indices.

    Returns:
      A pytree with the shapes and dtypes of ``x``.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      ValueError: if ``perm`` is not a permutation.

    The function is linear, like :func:`ppermute`.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(np.array([1, 2, 3])).tolist()
    [3, 1, 2]
    """
    size = axis_size(axis_name)
    if sorted(perm) != list(range(size)):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, [(int(s), d) for d, s in enumerate(perm)])


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
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


_GATHERED: Final = ("varying", "invarying", "reduced")
_CAST: Final = ("varying", "reduced", "unreduced")


def all_gather(
    x: Any, axis_name: AxisName, *, axis_index_groups: Groups = None, axis: int = 0,
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


def all_to_all(
    x: Any, axis_name: AxisName, split_axis: int, concat_axis: int, *,
    axis_index_groups: Groups = None, tiled: bool = False,
) -> Any:  # fmt: skip
    """Split arrays, send part ``i`` to index ``i``, and join the received parts.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      split_axis: the axis to split. Its size is the axis size, or with ``tiled`` a multiple of
        it.
      concat_axis: the axis of the result along which the received parts are joined.
      axis_index_groups: a partition of the indices into groups that are combined separately. It
        is supported over mesh axes, not over axes of ``vmap``.
      tiled: split into blocks and concatenate them. Otherwise ``split_axis`` disappears, and a
        new axis ``concat_axis`` of the same size is inserted.

    Returns:
      A pytree of arrays; index ``i`` has part ``i`` of the arrays of all indices, in their order.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      ValueError: if an axis is out of range or its size does not fit.
      NotImplementedError: for groups over axes of ``vmap``.

    The function is linear; its transpose exchanges the two axes.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> x = np.array([[1, 2], [3, 4]])
    >>> vmap(lambda row: all_to_all(row, "i", 0, 0), axis_name="i")(x).tolist()
    [[1, 3], [2, 4]]
    """
    names = names_of(axis_name)
    size = axis_size(names)
    groups = checked_groups("all_to_all", axis_index_groups, names, equal=True)
    size = size if groups is None else len(groups[0])

    def one(v):
        aval = typeof(v)
        split = canonical_axis(split_axis, aval.ndim, "all_to_all split_axis")
        concat = canonical_axis(concat_axis, aval.ndim, "all_to_all concat_axis")
        if tiled and aval.shape[split] % size:
            raise ValueError(
                f"The size of all_to_all split_axis ({aval.shape[split]}) has to be divisible "
                f"by the size of the named axis {axis_name} ({size})"
            )
        if not tiled and aval.shape[split] != size:
            raise ValueError(
                "all_to_all requires the size of the mapped axis axis_name to equal "
                f"x.shape[split_axis], but they are {size} and {aval.shape[split]} respectively."
            )
        if not are_joint(names):
            from . import several_axes

            return several_axes.all_to_all(
                all_to_all, v, names, [axis_size(n) for n in names], split, concat, tiled,
            )  # fmt: skip
        return bind(
            all_to_all_p, (v,), names, split_axis=split, concat_axis=concat,
            axis_index_groups=groups, axis_size=size, tiled=tiled,
        )  # fmt: skip

    return pytree.tree_map(one, x)


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Groups = None) -> Any:
    """Swap a named axis with an array axis of the same size.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.
      axis: the axis of the arrays.
      axis_index_groups: a partition of the indices into groups that are combined separately. It
        is supported over mesh axes, not over axes of ``vmap``.

    Returns:
      A pytree with the shapes and dtypes of ``x``: element ``j`` at index ``i`` is element ``i``
      of index ``j``.

    Raises:
      NameError: if no enclosing transformation binds the axis.
      ValueError: if the axis is out of range or has another size.
      NotImplementedError: for groups over axes of ``vmap``.

    The function is linear, and its own transpose. It is :func:`all_to_all` with two equal axes.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> x = np.array([[1, 2], [3, 4]])
    >>> vmap(lambda row: pswapaxes(row, "i", 0), axis_name="i")(x).tolist()
    [[1, 3], [2, 4]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def psum_scatter(
    x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups: Groups = None,
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


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
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


# Types and effects


def _used(names) -> frozenset:
    names = names if isinstance(names, tuple) else (names,)
    return frozenset(NamedAxisEffect(n) for n in names if not isinstance(n, int))


for _p in (psum_p, pmax_p, pmin_p):
    _p.rule(abstract)(lambda x, *, axes, axis_index_groups: x)
    _p.rule(effects)(lambda x, *, axes, axis_index_groups: _used(axes))
ppermute_p.rule(abstract)(lambda x, *, axis_name, perm: x)
for _p in (ppermute_p, all_gather_p, all_to_all_p, reduce_scatter_p, axis_index_p):
    _p.rule(effects)(lambda *_, axis_name, **__: _used(axis_name))


@axis_index_p.rule(abstract)
def _axis_index_abstract(*, axis_name):
    return ShapedArray((), np.dtype(np.int32))


@all_gather_p.rule(abstract)
def _all_gather_abstract(x, *, all_gather_dimension, axis_size, tiled, **_):
    d = all_gather_dimension
    if tiled:
        return x.update(shape=(*x.shape[:d], x.shape[d] * axis_size, *x.shape[d + 1 :]))
    return x.update(shape=(*x.shape[:d], axis_size, *x.shape[d:]))


@all_to_all_p.rule(abstract)
def _all_to_all_abstract(x, *, split_axis, concat_axis, axis_size, tiled, **_):
    shape = list(x.shape)
    if tiled:
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
    else:
        size = shape.pop(split_axis)
        shape.insert(concat_axis, size)
    return x.update(shape=tuple(shape))


@reduce_scatter_p.rule(abstract)
def _reduce_scatter_abstract(x, *, scatter_dimension, axis_size, tiled, **_):
    shape = list(x.shape)
    if tiled:
        shape[scatter_dimension] //= axis_size
    else:
        del shape[scatter_dimension]
    return x.update(shape=tuple(shape))


def unbound(ctx: Any, *_: Any, **params: Any) -> NoReturn:
    names = params.get("axis_name", params.get("axes"))
    raise NameError(
        f"Found an unbound axis name: {names}. A collective was compiled outside of the vmap (or "
        "mesh) that binds its axis."
    )


def lower_over_mesh(prim: Primitive) -> None:
    """Add the lowering rule of a collective: over the axes of a mesh, in a manual region."""

    @prim.rule(lower)
    def _lower(ctx, *values, **params):
        names = names_of(params.get("axis_name", params.get("axes")))
        if ctx.axes is None or not ctx.axes.manual.issuperset(names):
            unbound(ctx, **params)
        from .mesh_collectives import EMITTED

        return EMITTED[prim](ctx, *values, **params)


for _p in (
    psum_p, pmax_p, pmin_p, ppermute_p, all_gather_p, all_to_all_p, reduce_scatter_p, axis_index_p,
):  # fmt: skip
    lower_over_mesh(_p)


# Derivatives: all collectives except the maxima and minima are linear


def _linear(prim: Primitive, transposed: Callable) -> None:
    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        (t,) = tangents
        return out, Zero.like(out) if type(t) is Zero else prim.bind(t, **params)

    @prim.rule(transpose)
    def _transpose(ct, x, **params):
        return [transposed(instantiate(ct), x.aval, **params)]


_linear(psum_p, lambda ct, x, **params: psum_p.bind(ct, **params))
_linear(
    ppermute_p,
    lambda ct, x, *, axis_name, perm: ppermute_p.bind(
        ct, axis_name=axis_name, perm=tuple((d, s) for s, d in perm)
    ),
)
_linear(
    all_gather_p,
    lambda ct, x, *, all_gather_dimension, **params: reduce_scatter_p.bind(
        ct, scatter_dimension=all_gather_dimension, **params
    ),
)
_linear(
    reduce_scatter_p,
    lambda ct, x, *, scatter_dimension, **params: all_gather_p.bind(
        ct, all_gather_dimension=scatter_dimension, **params
    ),
)
_linear(
    all_to_all_p,
    lambda ct, x, *, split_axis, concat_axis, **params: all_to_all_p.bind(
        ct, split_axis=concat_axis, concat_axis=split_axis, **params
    ),
)
for _p in (pmax_p, pmin_p):
    _p.unsupported(jvp, f"Differentiation rule for '{_p.name}' not implemented: use all_gather")


# Over a mapped axis


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


@axis_index_p.rule(batch)
def _axis_index_batch(axis, args, dims, *, axis_name):
    if axis_name != axis.name:
        return axis_index_p.bind(axis_name=axis_name), None
    return iota(np.int32, axis.size), 0


def _mapped(prim: Primitive, on_front: Callable, shift: tuple[str, ...]) -> None:
    """Batch rule of an operation over one axis name.

    Args:
      on_front: ``(x with the mapped axis first, axis, **params) -> (result, its mapped axis)``.
      shift: parameters that are array axes, which shift if another axis is mapped.
    """

    @prim.rule(batch)
    def _batch(axis, args, dims, *, axis_name, **params):
        (x,), (d,) = args, dims
        x = at_front(x, d, axis.size)
        if axis.name not in axis_name:
            moved = {k: params[k] + 1 for k in shift}
            return prim.bind(x, axis_name=axis_name, **{**params, **moved}), 0
        if len(axis_name) > 1:
            raise ValueError(
                f"{prim.name} over several axis names at once cannot be mapped over one of them "
                f"({axis.name} of {axis_name}): apply it to one axis at a time"
            )
        return on_front(x, axis, **params)


def _ppermute(x, axis, *, perm):
    source = np.zeros(axis.size, np.int32)
    live = np.zeros(axis.size, bool)
    for s, d in perm:
        source[d], live[d] = s, True
    parts = []
    for d in range(axis.size):
        row = index_in_dim(x, int(source[d]), 0)
        parts.append(row if live[d] else mul(row, np.zeros((), typeof(x).dtype)[()]))
    if not all(live):
        zero = broadcast_in_dim(np.zeros((), typeof(x).dtype)[()], typeof(parts[0]).shape, ())
        parts = [p if on else zero for p, on in zip(parts, live)]
    return concatenate(parts, 0), 0


def _all_gather(x, axis, *, all_gather_dimension, axis_size, tiled, axis_index_groups):
    d = all_gather_dimension
    moved = _moveaxis(x, 0, d)
    if tiled:
        shape = typeof(moved).shape
        moved = reshape(moved, (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :]))
    return moved, None


def _all_to_all(x, axis, *, split_axis, concat_axis, axis_size, tiled, axis_index_groups):
    if not tiled:
        # The split axis becomes the mapped axis; the mapped axis becomes the concatenation axis.
        moved = _moveaxis(x, split_axis + 1, 0)
        return _moveaxis(moved, 1, concat_axis + 1), 0
    shape = typeof(x).shape
    s = split_axis + 1
    parts = reshape(x, (*shape[:s], axis_size, shape[s] // axis_size, *shape[s + 1 :]))
    parts = _moveaxis(parts, s, 0)  # destination, source, ...
    joined = _moveaxis(parts, 1, concat_axis + 1)
    c = concat_axis + 1
    shape = typeof(joined).shape
    return reshape(joined, (*shape[:c], shape[c] * shape[c + 1], *shape[c + 2 :])), 0


def _reduce_scatter(x, axis, *, scatter_dimension, axis_size, tiled, axis_index_groups):
    total = reduce_sum(x, (0,))
    d = scatter_dimension
    if tiled:
        shape = typeof(total).shape
        total = reshape(total, (*shape[:d], axis_size, shape[d] // axis_size, *shape[d + 1 :]))
    return total, d


def _moveaxis(x, source: int, target: int):
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(target, source)
    return transpose_array(x, tuple(order))


_mapped(ppermute_p, _ppermute, ())
_mapped(all_gather_p, _all_gather, ("all_gather_dimension",))
_mapped(all_to_all_p, _all_to_all, ("split_axis", "concat_axis"))
_mapped(reduce_scatter_p, _reduce_scatter, ("scatter_dimension",))


def _collective_samples(prim: Primitive, fun: Callable, *operands: Any) -> None:
    """Samples in which the last axis of the operand is mapped and named."""

    gone = {"parameters": "nothing is left of an operation over a mapped axis"}

    def mapped(x):
        axis = Axis(typeof(x).shape[-1], "i")
        return batch_of(lambda y: [fun(y)], [x], [typeof(x).ndim - 1], axis)[0]

    @prim.rule(samples)
    def _samples():
        for operand in operands:
            yield Sample(operand).set(call=mapped, without=gone)


_collective_samples(psum_p, lambda x: psum(x, "i"), f32(2, 3), c64(3), i32(2))
_collective_samples(pmax_p, lambda x: pmax(x, "i"), i32(2, 3), u8(3))
_collective_samples(pmin_p, lambda x: pmin(x, "i"), i32(2, 3), u8(3))
_collective_samples(ppermute_p, lambda x: ppermute(x, "i", [(0, 1), (1, 0)]), f32(2, 3), c64(2))
_collective_samples(all_gather_p, lambda x: all_gather(x, "i"), f32(2, 3), f32(2))
_collective_samples(all_to_all_p, lambda x: all_to_all(x, "i", 0, 1), f32(3, 2, 3))
_collective_samples(reduce_scatter_p, lambda x: psum_scatter(x, "i"), f32(3, 3), f32(3, 2, 3))
_collective_samples(axis_index_p, lambda x: x * axis_index("i"), f32(2, 3), f32(3))
