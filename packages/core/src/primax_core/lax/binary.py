"""Elementwise arithmetic."""

from __future__ import annotations

from typing import Any, Final

from .._ir.primitive import Primitive, jvp, transpose
from .._lower.lazy import hlo
from .._trace.array import Array
from .._trace.core import typeof
from .._transform.symbolic import Zero, add_any_p, is_linear
from .families import derivatives, elementwise, linear, sum_to, to_shape

ArrayLike = Any

add_p: Final = Primitive("add")
sub_p: Final = Primitive("sub")
mul_p: Final = Primitive("mul")
div_p: Final = Primitive("div")
neg_p: Final = Primitive("neg")


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise sum of operands of one dtype and shape (scalars go with any shape)."""
    return add_p.bind(x, y)


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise difference."""
    return sub_p.bind(x, y)


def mul(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise product."""
    return mul_p.bind(x, y)


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise quotient; integers are divided toward zero."""
    return div_p.bind(x, y)


def neg(x: ArrayLike) -> Array:
    """Each element with its sign changed."""
    return neg_p.bind(x)


elementwise(add_p, lambda ctx, x, y: hlo.add(x, y), ("number", "bool"))
elementwise(add_any_p, lambda ctx, x, y: hlo.add(x, y), ("number",))
elementwise(sub_p, lambda ctx, x, y: hlo.subtract(x, y), ("number",))
elementwise(mul_p, lambda ctx, x, y: hlo.multiply(x, y), ("number", "bool"))
elementwise(div_p, lambda ctx, x, y: hlo.divide(x, y), ("number",))
elementwise(neg_p, lambda ctx, x: hlo.negate(x), ("number",))


def _sum_rules(prim, sign) -> None:
    """Derivatives of sums and differences."""

    @prim.rule(jvp)
    def _(primals, tangents):
        out = prim.bind(*primals)
        aval = typeof(out)
        tx, ty = (t if type(t) is Zero else to_shape(t, aval.shape) for t in tangents)
        if type(ty) is Zero:
            return out, Zero.like(out) if type(tx) is Zero else tx
        if type(tx) is Zero:
            return out, sign(ty)
        return out, prim.bind(tx, ty)

    @prim.rule(transpose)
    def _(ct, x, y):
        return [
            sum_to(ct, x.aval) if is_linear(x) else None,
            sign(sum_to(ct, y.aval)) if is_linear(y) else None,
        ]


_sum_rules(add_p, lambda t: t)
_sum_rules(add_any_p, lambda t: t)
_sum_rules(sub_p, neg)
linear(neg_p, lambda ct, aval: neg(ct))

derivatives(mul_p, lambda g, out, x, y: mul(g, y), lambda g, out, x, y: mul(x, g))


@mul_p.rule(transpose)
def _(ct, x, y):
    return [
        sum_to(mul(ct, y), x.aval) if is_linear(x) else None,
        sum_to(mul(x, ct), y.aval) if is_linear(y) else None,
    ]


derivatives(
    div_p,
    lambda g, out, x, y: div(g, y),
    lambda g, out, x, y: mul(mul(neg(g), x), reciprocal_square(y)),
)


@div_p.rule(transpose)
def _(ct, x, y):
    return [sum_to(div(ct, y), x.aval), None]


def reciprocal_square(y):
    """``y ** -2``."""
    return div(div(full_like_one(y), y), y)


def full_like_one(y):
    """A scalar one of the dtype of ``y``."""
    return typeof(y).dtype.type(1)


