"""Symbolic dimensions as array values, such as ``x.shape[0]`` in arithmetic with arrays.

The module is loaded together with symbolic shapes, so that other programs do not import it.
"""

from __future__ import annotations

from typing import Any

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.dimensions import DimExpr, dim_as_value_p as dim_as_value_p
from .._ir.dimensions.scope import SymbolicScope
from .._ir.primitive import abstract, jvp, lower
from .._ir.samples import Sample, samples
from .._lower.lazy import shaped
from .._trace.core import register_value_type


def _aval(dim: Any) -> ShapedArray:
    return ShapedArray((), dtypes.default_int(), True)


register_value_type(DimExpr, _aval)


@dim_as_value_p.rule(abstract)
def _abstract(*, dim):
    return _aval(dim)


@dim_as_value_p.rule(lower)
def _lower(ctx, *, dim):
    return shaped.size_value(dim, ctx.out_avals[0].dtype)


dim_as_value_p.unsupported(jvp, "it has no operands, and its value is an integer")


@dim_as_value_p.rule(samples)
def _samples():
    why = "its value is that of a program's arguments, which a call by itself does not have"
    unseen = ("abstract", "weak type", "compiled", "purity", "mutation", "programs", "effects")
    dim = SymbolicScope().variable("a")
    yield Sample(dim=2 * dim + 1).set(without=dict.fromkeys(unseen, why))
