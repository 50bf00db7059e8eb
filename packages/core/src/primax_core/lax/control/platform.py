"""``platform_dependent``: a branch for each platform, selected at compile time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..._base import pytree
from ..._base.config import state
from ..._base.source import api_boundary
from ..._ir.avals import ShapedArray
from ..._ir.primitive import Primitive, abstract, lower
from ..._ir.samples import Sample, samples
from ..._lower.lazy import mlir
from ..._runtime.array import ArrayImpl, default_sharding
from ..._runtime.devices import platform_of
from ..._trace.core import Tracer
from .cond import bind_branches, platform_position

platform_index_p: Final = Primitive("platform_index")


@api_boundary
def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The result of the function for the platform of the compilation.

    Args:
      args: arguments of the functions.
      default: the function for all other platforms.
      per_platform: functions by platform: ``cpu``, ``cuda``, ``rocm``, ``tpu``.

    Returns:
      The result of the function for the platform, a pytree of arrays.

    All functions are traced and must return results of the same types. Only the platform's function
    is compiled, or called eagerly. Derivatives and batches select the same platform.

    Raises:
      ValueError: for the ambiguous platform ``gpu``.
      NotImplementedError: during compilation, if there is no function for the platform.
      TypeError: if the types of the functions' results differ.

    >>> float(platform_dependent(3.0, cpu=lambda x: x + 1.0, default=lambda x: x))
    4.0
    """
    if "gpu" in per_platform:
        raise ValueError("Use 'cuda', 'rocm', or 'oneapi' for lax.platform_dependent.")
    platforms: tuple = tuple((name,) for name in per_platform)
    funs = list(per_platform.values())
    if default is not None:
        platforms, funs = (*platforms, None), [*funs, default]
    leaves = pytree.tree_leaves(args)
    if state.trace is None and not any(isinstance(x, Tracer) for x in leaves):
        return funs[platform_position(platforms, _platform_of(leaves))](*args)
    if not per_platform:
        return funs[platform_position(platforms, "any")](*args)
    index = platform_index_p.bind(platforms=platforms)
    names = tuple(f"branch {i}" for i in range(len(funs)))
    return bind_branches("switch", index, funs, args, names, branches_platforms=platforms)


def _platform_of(leaves: list) -> str:
    """The platform of a computation with these arguments."""
    committed = [x for x in leaves if isinstance(x, ArrayImpl) and x._spec.committed]
    where = committed[0].sharding if committed else default_sharding()
    return platform_of(where._devices[0])


@platform_index_p.rule(abstract)
def _abstract(*, platforms):
    return ShapedArray((), np.dtype(np.int32))


@platform_index_p.rule(lower)
def _lower(ctx, *, platforms):
    return mlir.constant(np.int32(platform_position(platforms, ctx.platform)))


@platform_index_p.rule(samples)
def _samples():
    yield Sample(platforms=(("cpu",), None))
    yield Sample(platforms=(("other",), ("cpu", "cuda", "rocm", "tpu")))
