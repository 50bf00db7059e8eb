"""Types, traces and evaluation of jaxprs: the reference's ``jax.core``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from primax_core import ensure_compile_time_eval as ensure_compile_time_eval
from primax_core.extend import (
    ShapedArray as ShapedArray,
    Tracer as Tracer,
    dimensions as _dimensions,
    set_trace as _set_trace,
)
from primax_core.extend.dimensions import Dimension as _Dimension

from ._adapters import (
    binding as _binding,  # noqa: F401 - it completes primitives
    renamed as _renamed,
)
from ._adapters.jaxprs import (
    AbstractValue as AbstractValue,
    Atom as Atom,
    eval_jaxpr as eval_jaxpr,
)
from ._adapters.traces import Trace as Trace

ParamDict: TypeAlias = dict[str, Any]
Value: TypeAlias = Any


@contextmanager
def eval_context() -> Iterator[None]:
    """Context manager for eager evaluation inside transformations."""
    with _set_trace(None):
        yield


def max_dim(d1: int | _Dimension, d2: int | _Dimension) -> Any:
    """Return the larger of two sizes, which may be symbolic dimensions."""
    return _dimensions.max_dim(d1, d2)


def min_dim(d1: int | _Dimension, d2: int | _Dimension) -> Any:
    """Return the smaller of two sizes, which may be symbolic dimensions."""
    return _dimensions.min_dim(d1, d2)


def __getattr__(name: str) -> Any:
    return _renamed.answer(__name__, name)
