"""Casts of values between the types that they can have along a manual axis of a mesh.

| Along an axis | Values of the positions | Type |
|---|---|---|
| invarying | are equal | `f32[4]` |
| varying | may differ | `f32[4]{V:x}` |
| unreduced | are parts whose sum is the value | `f32[4]{U:x}` |
| reduced | are equal, and their cotangent is unreduced | `f32[4]{R:x}` |

Each cast is a primitive with one operand. This module has all of their rules except `place`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Primitive,
    Zero,
    abstract,
    batch,
    instantiate,
    jvp,
    lower,
    transpose,
    typeof,
)

Names = tuple[Hashable, ...]

pvary_p: Final = Primitive("pvary")
"""Invarying to varying."""
psum_invariant_p: Final = Primitive("psum_invariant")
"""The sum of varying values, which is invarying."""
preduced_p: Final = Primitive("preduced")
"""Invarying to reduced."""
unreduced_psum_p: Final = Primitive("unreduced_psum")
"""The sum of unreduced values, which is invarying."""
reduced_vary_cast_p: Final = Primitive("reduced_vary_cast")
"""Reduced to varying."""
vary_unreduced_cast_p: Final = Primitive("vary_unreduced_cast")
"""Varying to unreduced: the result is the sum of the values."""

TRANSPOSES: Final = {
    pvary_p: psum_invariant_p,
    preduced_p: unreduced_psum_p,
    reduced_vary_cast_p: vary_unreduced_cast_p,
}
TRANSPOSES.update({back: prim for prim, back in TRANSPOSES.items()})


def linear_collective(prim: Primitive, transposed: Callable[..., Any]) -> None:
    """Add the derivatives of a linear operation on one operand.

    Args:
      transposed: from a cotangent and the parameters to the cotangent of the operand.
    """

    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):  # type: ignore[no-untyped-def]
        out, (t,) = prim.bind(*primals, **params), tangents
        return out, Zero.like(out) if type(t) is Zero else prim.bind(t, **params)

    @prim.rule(transpose)
    def _transpose(ct, x, **params):  # type: ignore[no-untyped-def]
        return [transposed(instantiate(ct), **params)]


def _define(prim: Primitive, sums: bool) -> None:
    prim.rule(abstract)(lambda x, *, axes: x)

    @prim.rule(lower)
    def _lower(ctx, x, *, axes):  # type: ignore[no-untyped-def]
        return ctx.rule(lax.psum_p)(ctx, x, axes=axes, axis_index_groups=None) if sums else x

    @prim.rule(batch)
    def _batch(axis, args, dims, *, axes):  # type: ignore[no-untyped-def]
        return prim.bind(*args, axes=axes), dims[0]

    linear_collective(prim, TRANSPOSES[prim].bind)


for _prim in TRANSPOSES:
    _define(_prim, sums=_prim in (psum_invariant_p, unreduced_psum_p))


def ordered(names: Any, mesh: Any) -> Names:
    """Some axes of a mesh, in the order of the mesh."""
    return tuple([n for n in mesh.axis_names if n in names])


def cast_manual(x: Any, placement: Any, actual: Any) -> Any:
    """A value with the manual axes of another placement.

    Args:
      placement: the placement to cast to.
      actual: the value's placement; it has `varying`, `unreduced` and `reduced`, or is `None`.

    Raises:
      TypeError: if there is no such cast, which needs no communication.
    """
    varying, unreduced, reduced = (
        (actual.varying, actual.unreduced, actual.reduced)
        if actual is not None
        else (frozenset(),) * 3
    )
    mesh = placement.mesh
    to_unreduced = placement.manual(placement.unreduced) - unreduced
    to_reduced = placement.manual(placement.reduced) - reduced
    # The first position has the value of an unreduced one that was equal, and the others have 0.
    x = first_only(x, ordered(to_unreduced - varying - reduced, mesh))
    to_varying = (placement.varying | (to_unreduced & reduced)) - varying
    if lost := (varying - placement.varying - to_unreduced) | (unreduced - placement.unreduced):
        names = ", ".join(map(repr, ordered(lost, mesh)))
        raise TypeError(
            f"a value of type {typeof(x)} is needed with the type of a value that is equal along "
            f"the mesh axis {names}: sum it with lax.psum, or gather it with "
            "lax.all_gather(..., to='invarying')"
        )
    steps = (
        (reduced_vary_cast_p, to_varying & reduced),
        (pvary_p, to_varying - reduced),
        (vary_unreduced_cast_p, to_unreduced),
        (preduced_p, to_reduced),
    )
    for prim, names in steps:
        if names:
            x = prim.bind(x, axes=ordered(names, mesh))
    return x


def first_only(x: Any, names: Names) -> Any:
    """The value where the position along some axes is 0, and 0 elsewhere; it varies along them."""
    for name in names:
        first = lax.eq(lax.axis_index_p.bind(axis_name=name), np.int32(0))
        aval = typeof(x)
        zero = np.zeros((), aval.dtype)[()]
        x = lax.select_n(first, lax.broadcast_in_dim(zero, aval.shape, ()), x)
    return x


def difference_of_manual(expected: Any, actual: Any, mesh: Any) -> str:
    """The difference of two types along the manual axes, and how to mend it."""
    varying = [_varying(expected), _varying(actual)]
    (fewer, more), which = (
        (varying, "first") if varying[0] <= varying[1] else (varying[::-1], "second")
    )
    text = "the manual axis types do not match"
    if fewer == more or not fewer <= more:
        return f"{text}: {expected} and {actual}"
    names = ", ".join(map(repr, ordered(more - fewer, mesh)))
    return f"{text}; apply lax.pcast(..., ({names},), to='varying') to the {which} value"


def _varying(aval: Any) -> Any:
    placement = aval.placement
    return getattr(placement, "varying", frozenset())
