"""Primitives of the reference that the core does not need."""

from __future__ import annotations

from typing import Any, Final

from primax_core import lax
from primax_core.extend import Primitive, ShapedArray, abstract, batch, expand

from .calls import create_call_primitive

call_p: Final = create_call_primitive("eval_jaxpr")
"""Primitive that evaluates the jaxpr ``call_jaxpr``."""

empty2_p: Final = Primitive("empty2")
"""A scalar with a dtype and an irrelevant value: ``empty2_p.bind(dtype=..., memory_space=...)``."""


@empty2_p.rule(abstract)
def _abstract(*, dtype: Any, memory_space: Any = None) -> Any:
    return ShapedArray((), dtype)


@empty2_p.rule(expand)
def _expand(*, dtype: Any, memory_space: Any = None) -> Any:
    return lax.empty((), dtype)


@empty2_p.rule(batch)
def _batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    return empty2_p.bind(**params), None
