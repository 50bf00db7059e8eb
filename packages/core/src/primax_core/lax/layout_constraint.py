"""``with_layout_constraint``: the memory layout of an intermediate value."""

from __future__ import annotations

from typing import Any, Final

from .._base import pytree
from .._base.pytree import PyTree
from .._base.source import api_boundary
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.samples import Sample, f32, samples
from .._runtime.dispatch import impl, relaid
from .._runtime.layouts import Layout, canonical
from .._trace.core import typeof
from .elementwise import linear
from .placement import emit_layout

layout_constraint_p: Final = Primitive("layout_constraint")


@api_boundary
def with_layout_constraint(x: PyTree, layouts: PyTree) -> Any:
    """The same values with the given memory layouts.

    Concrete arrays are rearranged. In a traced function the compiler receives a constraint.

    Args:
      x: a pytree of arrays.
      layouts: a ``Layout``, or a pytree prefix of ``x`` with layouts.

    Returns:
      The pytree with the values of ``x``.

    Raises:
      ValueError: if a layout is not a permutation of the axes of its array.
      TypeError: if a leaf of ``layouts`` is not a ``Layout``.

    The same constraint applies to tangents and cotangents. Under ``vmap`` the mapped axis is the
    slowest-varying one.

    >>> import numpy as np
    >>> from primax_core.layout import Layout
    >>> x = with_layout_constraint(np.ones((2, 3)), Layout((1, 0)))
    >>> x.format.layout.major_to_minor
    (1, 0)
    """
    leaves, tree = pytree.tree_flatten(x)
    leaf_layouts = pytree.broadcast_prefix(layouts, x, is_leaf=lambda v: v is None)
    for leaf, layout in zip(leaves, leaf_layouts):
        if not isinstance(layout, Layout):
            raise TypeError(f"with_layout_constraint takes layouts, got {layout!r}")
        try:
            canonical(layout, typeof(leaf).shape)
        except ValueError as e:
            raise ValueError(
                "One of with_layout_constraint arguments is incompatible with its layout "
                f"annotation {layout}: {e}"
            ) from None
    outs = [layout_constraint_p.bind(v, layout=layout) for v, layout in zip(leaves, leaf_layouts)]
    return pytree.tree_unflatten(tree, outs)


@layout_constraint_p.rule(abstract)
def _abstract(x, *, layout):
    return x


@layout_constraint_p.rule(lower)
def _lower(ctx, x, *, layout):
    return emit_layout(x, layout)


@layout_constraint_p.rule(impl)
def _impl(x, *, layout):
    return relaid(x, canonical(layout, x.shape))


linear(layout_constraint_p, lambda ct, x, **params: layout_constraint_p.bind(ct, **params))


@layout_constraint_p.rule(batch)
def _batch(axis, args, dims, *, layout):
    (dim,) = dims
    order = (dim, *(d + (d >= dim) for d in layout.major_to_minor))
    return layout_constraint_p.bind(*args, layout=layout.update(major_to_minor=order)), dim


@layout_constraint_p.rule(samples)
def _samples():
    yield Sample(f32(2, 3), layout=Layout((1, 0)))
    yield Sample(f32(), layout=Layout(()))
