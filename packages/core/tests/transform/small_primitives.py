"""Four primitives with the rules of the pure passes, declared without ``lax`` and the runtime."""

from __future__ import annotations

from typing import Final

import numpy as np

from primax_core._ir.avals import ShapedArray
from primax_core._ir.primitive import Primitive, abstract, batch, expand, jvp, transpose
from primax_core._transform.zeros import Zero, add_tangents, is_linear

sine_p: Final = Primitive("sine")
cosine_p: Final = Primitive("cosine")
times_p: Final = Primitive("times")
scale_p: Final = Primitive("scale")
cube_p: Final = Primitive("cube")

VECTOR: Final = ShapedArray((3,), np.dtype(np.float32))


def _same_type(*avals, **params):
    return avals[0]


for _prim in (sine_p, cosine_p, times_p, scale_p):
    _prim.rule(abstract)(_same_type)
for _prim in (sine_p, cosine_p, scale_p):
    _prim.rule(batch)(
        lambda axis, args, dims, _prim=_prim, **params: (_prim.bind(*args, **params), dims[0])
    )


@sine_p.rule(jvp)
def _sine_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return sine_p.bind(x), times_p.bind(cosine_p.bind(x), t)


@cosine_p.rule(jvp)
def _cosine_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return cosine_p.bind(x), times_p.bind(scale_p.bind(sine_p.bind(x), factor=-1.0), t)


@times_p.rule(jvp)
def _times_jvp(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    total = Zero.like(x)
    if type(tx) is not Zero:
        total = add_tangents(total, times_p.bind(tx, y))
    if type(ty) is not Zero:
        total = add_tangents(total, times_p.bind(x, ty))
    return times_p.bind(x, y), total


@times_p.rule(transpose)
def _times_transpose(ct, x, y):
    if is_linear(x):
        return [times_p.bind(ct, y), None]
    return [None, times_p.bind(x, ct)]


@times_p.rule(batch)
def _times_batch(axis, args, dims):
    assert dims[0] == dims[1]
    return times_p.bind(*args), dims[0]


@scale_p.rule(jvp)
def _scale_jvp(primals, tangents, *, factor):
    return scale_p.bind(*primals, factor=factor), scale_p.bind(*tangents, factor=factor)


@scale_p.rule(transpose)
def _scale_transpose(ct, x, *, factor):
    return [scale_p.bind(ct, factor=factor)]


@cube_p.rule(expand)
def _cube_expand(x):
    return times_p.bind(times_p.bind(x, x), x)
