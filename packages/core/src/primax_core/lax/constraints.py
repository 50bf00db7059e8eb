"""``with_sharding_constraint``: the sharding of an intermediate value."""

from __future__ import annotations

from typing import Any, Final

from .._base import pytree
from .._base.pytree import PyTree
from .._base.source import api_boundary
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.rules import devices
from .._ir.samples import Sample, f32, samples
from .._runtime.array import default_sharding
from .._runtime.dispatch import impl
from .._runtime.layouts import Format, Layout
from .._runtime.sharding import Sharding, ShardingLike, as_sharding
from .._trace.core import typeof
from .elementwise import linear
from .layout_constraint import with_layout_constraint
from .out_sharding import check_divides, constrain, devices_named
from .placement import ArrayCopySemantics, moved

sharding_constraint_p: Final = Primitive("sharding_constraint")


@api_boundary
def with_sharding_constraint(x: PyTree, shardings: ShardingLike | PyTree) -> Any:
    """The same values with the given shardings.

    Concrete arrays are moved. In a traced function the compiler receives a constraint.

    Args:
      x: a pytree of arrays.
      shardings: shardings or formats, a pytree prefix of ``x``. Shardings have no effect in a
        traced function that runs on one device. The layout of a ``Format`` is a constraint too,
        as in :func:`with_layout_constraint`; ``Layout.AUTO`` leaves it open.

    Returns:
      The pytree with the values of ``x``.

    The same constraint applies to tangents and cotangents.

    Raises:
      ValueError: if a sharding is ``None``, ``shardings`` is not a prefix of ``x``, or a layout is
        not a permutation of the axes of its array.
      TypeError: if a leaf of ``shardings`` is not a sharding or a format.

    >>> from primax_core import devices
    >>> from primax_core._runtime.sharding import SingleDeviceSharding
    >>> float(with_sharding_constraint(1.0, SingleDeviceSharding(devices()[0])))
    1.0
    """
    leaves, tree = pytree.tree_flatten(x)
    requested = pytree.broadcast_prefix(shardings, x, is_leaf=lambda s: s is None)
    leaf_shardings = [as_sharding(r.sharding if isinstance(r, Format) else r) for r in requested]
    for s in leaf_shardings:
        if s is None:
            raise ValueError(
                "One of with_sharding_constraint arguments got sharding None which is not allowed. "
                "Give a sharding for each array."
            )
        if not isinstance(s, Sharding):
            raise TypeError(
                "shardings leaf specifications are expected to be shardings, but got "
                f"{s!r} of type {type(s)}"
            )
    for leaf, s in zip(leaves, leaf_shardings):
        s._check_axes("with_sharding_constraint")
        s._check_constraint(typeof(leaf))
    outs = [
        sharding_constraint_p.bind(v, sharding=s, unconstrained_dims=frozenset())
        for v, s in zip(leaves, leaf_shardings)
    ]
    for i, r in enumerate(requested):
        if isinstance(r, Format) and isinstance(r.layout, Layout):
            outs[i] = with_layout_constraint(outs[i], r.layout)
    return pytree.tree_unflatten(tree, outs)


@sharding_constraint_p.rule(abstract)
def _abstract(x, *, sharding, unconstrained_dims):
    check_divides(sharding, x.shape, "with_sharding_constraint")
    return x


@sharding_constraint_p.rule(lower)
def _lower(ctx, x, *, sharding, unconstrained_dims):
    if ctx.num_partitions > 1 and sharding.num_devices not in (1, ctx.num_partitions):
        raise ValueError(
            f"with_sharding_constraint with {sharding} in a computation on {ctx.num_partitions} "
            f"devices: use a mesh of {ctx.num_partitions} devices"
        )
    return constrain(x, sharding, ctx.in_avals[0], unconstrained_dims)


@sharding_constraint_p.rule(devices)
def _devices(eqn):
    return devices_named(eqn.params["sharding"])


@sharding_constraint_p.rule(impl)
def _impl(x, *, sharding, unconstrained_dims):
    if sharding._is_abstract:
        own = getattr(x, "sharding", default_sharding())
        abstract, sharding = sharding, sharding._over_devices_of([own])
        if sharding is abstract:
            raise ValueError(
                f"with_sharding_constraint of a concrete array: {abstract} has no devices, because "
                f"its mesh is abstract, and neither the array, with {own}, nor set_mesh gives a "
                "mesh of these axes. Use a sharding over a Mesh, or call it in "
                "`with set_mesh(mesh):`"
            )
    return moved(x, sharding, ArrayCopySemantics.REUSE_INPUT)


linear(sharding_constraint_p, lambda ct, x, **params: sharding_constraint_p.bind(ct, **params))


@sharding_constraint_p.rule(batch)
def _batch(axis, args, dims, *, sharding, unconstrained_dims):
    (dim,) = dims
    name = axis.mesh_axes
    free = {d + (d >= dim) for d in unconstrained_dims} | (set() if name else {dim})
    batched = sharding._batched(dim, name)
    out = sharding_constraint_p.bind(*args, sharding=batched, unconstrained_dims=frozenset(free))
    return out, dim


@sharding_constraint_p.rule(samples)
def _samples():
    here = {"sharding": default_sharding(), "unconstrained_dims": frozenset()}
    yield Sample(f32(2, 3), **here)
    yield Sample(f32(), **here)
