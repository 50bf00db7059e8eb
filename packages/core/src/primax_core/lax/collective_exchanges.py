"""Exchanges along named axes: permutations, and the exchange of a named with an array axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._base import pytree
from .._base.pytree import PyTree
from .._ir.primitive import Primitive, abstract
from .._ir.samples import c64, f32
from .._trace.core import typeof
from .arithmetic import mul
from .axis_binding import (
    AxisName,
    Groups,
    are_joint,
    axis_size,
    bind,
    checked_groups,
    names_of,
)
from .broadcasting import broadcast_in_dim
from .collective_rules import (
    collective_samples,
    linear,
    lower_over_mesh,
    mapped,
    moveaxis,
    uses_axes,
)
from .joining import concatenate
from .reshaping import reshape
from .shapes import canonical_axis
from .slicing import index_in_dim

ppermute_p: Final = Primitive("ppermute")
all_to_all_p: Final = Primitive("all_to_all")


def ppermute(x: PyTree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
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


def pshuffle(x: PyTree, axis_name: AxisName, perm: Sequence[int]) -> Any:
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


def all_to_all(
    x: PyTree, axis_name: AxisName, split_axis: int, concat_axis: int, *,
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


def pswapaxes(
    x: PyTree, axis_name: AxisName, axis: int, *, axis_index_groups: Groups = None
) -> Any:
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


ppermute_p.rule(abstract)(lambda x, *, axis_name, perm: x)


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


for _p in (ppermute_p, all_to_all_p):
    uses_axes(_p)
    lower_over_mesh(_p)
linear(
    ppermute_p,
    lambda ct, x, *, axis_name, perm: ppermute_p.bind(
        ct, axis_name=axis_name, perm=tuple((d, s) for s, d in perm)
    ),
)
linear(
    all_to_all_p,
    lambda ct, x, *, split_axis, concat_axis, **params: all_to_all_p.bind(
        ct, split_axis=concat_axis, concat_axis=split_axis, **params
    ),
)


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


def _all_to_all(x, axis, *, split_axis, concat_axis, axis_size, tiled, axis_index_groups):
    if not tiled:
        # The split axis becomes the mapped axis; the mapped axis becomes the concatenation axis.
        moved = moveaxis(x, split_axis + 1, 0)
        return moveaxis(moved, 1, concat_axis + 1), 0
    shape = typeof(x).shape
    s = split_axis + 1
    parts = reshape(x, (*shape[:s], axis_size, shape[s] // axis_size, *shape[s + 1 :]))
    parts = moveaxis(parts, s, 0)  # destination, source, ...
    joined = moveaxis(parts, 1, concat_axis + 1)
    c = concat_axis + 1
    shape = typeof(joined).shape
    return reshape(joined, (*shape[:c], shape[c] * shape[c + 1], *shape[c + 2 :])), 0


mapped(ppermute_p, _ppermute, ())
mapped(all_to_all_p, _all_to_all, ("split_axis", "concat_axis"))
collective_samples(ppermute_p, lambda x: ppermute(x, "i", [(0, 1), (1, 0)]), f32(2, 3), c64(2))
collective_samples(all_to_all_p, lambda x: all_to_all(x, "i", 0, 1), f32(3, 2, 3))
