"""Functions wrapped in transformations: the reference's ``jax.extend.linear_util``."""

from __future__ import annotations

from typing import Final as _Final

from .._adapters import wrapped as _wrapped
from .._adapters.wrapped import (
    StoreException as StoreException,
    WrappedFun as WrappedFun,
    cache as cache,
    merge_linear_aux as merge_linear_aux,
    wrap_init as wrap_init,
)

transformation: _Final[_wrapped.Transformation] = _wrapped.Transformation(_wrapped.transformation)
transformation2: _Final[_wrapped.Transformation] = _wrapped.Transformation(_wrapped.transformation2)
transformation_with_aux: _Final[_wrapped.Transformation] = _wrapped.Transformation(
    _wrapped.transformation_with_aux
)
transformation_with_aux2: _Final[_wrapped.Transformation] = _wrapped.Transformation(
    _wrapped.transformation_with_aux2
)
