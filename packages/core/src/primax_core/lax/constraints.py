"""``with_sharding_constraint``: where a value of a program is to lie."""

from __future__ import annotations

from typing import Any, Final

from .._base import pytree
from .._base.source import api_boundary
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.samples import Sample, f32, samples
from .._lower.lazy import ir, mlir
from .._runtime.array import default_sharding
from .._runtime.dispatch import impl
from .._runtime.sharding import Sharding
from .._trace.core import typeof
from .elementwise import linear
from .placement import ArrayCopySemantics, moved

sharding_constraint_p: Final = Primitive("sharding_constraint")


@api_boundary
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The same values, lying as said: eagerly they are moved, in a program the compiler is told.

    Args:
      x: a pytree of arrays.
      shardings: a pytree prefix of shardings for it. Inside a program that runs on one device
        they say nothing.

    Derivatives and cotangents are constrained alike.

    Raises:
      ValueError: if a sharding is ``None``, or ``shardings`` is no prefix of ``x``.
      TypeError: if one is something else than a sharding.

    >>> from primax_core import devices
    >>> from primax_core._runtime.sharding import SingleDeviceSharding
    >>> float(with_sharding_constraint(1.0, SingleDeviceSharding(devices()[0])))
    1.0
    """
    leaves, tree = pytree.tree_flatten(x)
    given = pytree.broadcast_prefix(shardings, x, is_leaf=lambda s: s is None)
    for s in given:
        if s is None:
            raise ValueError(
                "One of with_sharding_constraint arguments got sharding None which is not allowed. "
                "Please only pass `jax.sharding.Sharding` instances."
            )
        if not isinstance(s, Sharding):
            raise TypeError(
                "shardings leaf specifications are expected to be shardings, but got "
                f"{s!r} of type {type(s)}"
            )
    for leaf in leaves:
        typeof(leaf)
    outs = [
        sharding_constraint_p.bind(v, sharding=s, unconstrained_dims=frozenset())
        for v, s in zip(leaves, given)
    ]
    return pytree.tree_unflatten(tree, outs)


@sharding_constraint_p.rule(abstract)
def _abstract(x, *, sharding, unconstrained_dims):
    return x


@sharding_constraint_p.rule(lower)
def _lower(ctx, x, *, sharding, unconstrained_dims):
    text = sharding._sdy(ctx.in_avals[0].ndim)
    if text is None:
        return x
    return mlir.sdy().sharding_constraint(x, ir.Attribute.parse(text))


@sharding_constraint_p.rule(impl)
def _impl(x, *, sharding, unconstrained_dims):
    return moved(x, sharding, ArrayCopySemantics.REUSE_INPUT)


linear(sharding_constraint_p, lambda ct, x, **params: sharding_constraint_p.bind(ct, **params))


@sharding_constraint_p.rule(batch)
def _batch(axis, args, dims, *, sharding, unconstrained_dims):
    (dim,) = dims
    free = frozenset({d + (d >= dim) for d in unconstrained_dims} | {dim})
    return sharding_constraint_p.bind(*args, sharding=sharding, unconstrained_dims=free), dim


@sharding_constraint_p.rule(samples)
def _samples():
    here = {"sharding": default_sharding(), "unconstrained_dims": frozenset()}
    yield Sample(f32(2, 3), **here)
    yield Sample(f32(), **here)
