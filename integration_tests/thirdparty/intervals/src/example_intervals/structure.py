"""Rules for primitives that move, sum or select numbers."""

from __future__ import annotations

from primax_core import lax

from .arithmetic import increasing
from .intervals import Interval, interval

for _prim in (
    lax.reshape_p, lax.broadcast_in_dim_p, lax.transpose_p, lax.squeeze_p, lax.slice_p, lax.rev_p,
    lax.concatenate_p, lax.pad_p, lax.reduce_sum_p, lax.reduce_max_p, lax.reduce_min_p,
    lax.reduce_and_p, lax.reduce_or_p, lax.cumsum_p, lax.cummax_p, lax.cummin_p,
    lax.convert_element_type_p, lax.tile_p,
):  # fmt: skip
    increasing(_prim)


@lax.iota_p.rule(interval)
def _interval(**params):
    out = lax.iota_p.bind(**params)
    return Interval(out, out)


@lax.dot_general_p.rule(interval)
def _dot_general_interval(x, y, **params):
    """Midpoint-radius product: ``|x y - m n| <= |m| s + r (|n| + s)`` (Rump 1999)."""
    dot = lambda a, b: lax.dot_general_p.bind(a, b, **params)
    (m, r), (n, s) = _middle(x), _middle(y)
    middle = dot(m, n)
    radius = lax.add(dot(lax.abs(m), s), dot(r, lax.add(lax.abs(n), s)))
    return Interval(lax.sub(middle, radius), lax.add(middle, radius))


def _middle(x: Interval):
    half = lax.full_like(x.low, 0.5)
    middle = lax.mul(half, lax.add(x.low, x.high))
    return middle, lax.sub(x.high, middle)
