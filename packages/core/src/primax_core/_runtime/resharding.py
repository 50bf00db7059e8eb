"""Another sharding of an array on the same devices, which exchange the parts that they need.

Loaded on first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import caches
from .._trace.staging import stage
from . import dispatch
from .array import ArrayImpl, spec_of
from .jaxlib_versions import _jax
from .sharding import Sharding
from .tiled_sharding import TiledSharding
from .tilings import Tiling

_copies: dict[tuple, Any] = caches.bounded_cache()


def can_reshard(source: Sharding, target: Sharding) -> bool:
    """Return True if `resharded` converts one sharding to the other."""
    return (
        source.num_devices == target.num_devices > 1
        and source.device_set == target.device_set
        and source._on_default_memory()
        and target._on_default_memory()
    )


def resharded(array: ArrayImpl, target: Sharding) -> ArrayImpl:
    """The array with another sharding over the same devices, by one compiled program."""
    array._check_alive()
    spec = array._spec
    ndim = spec.stored.ndim
    result_spec = spec_of(spec.aval, target, True)
    if spec.sharding._devices == target._devices:
        if spec.layout is None and spec.sharding.is_equivalent_to(target, ndim):
            return result_spec.wrap(array._buf)
        return result_spec.wrap(_run(array, target)._buf)
    # The partitions keep the order of the source while the parts are exchanged.
    order = _positions(spec.sharding, target)[Tiling.of_xla(
        target._hlo_sharding(ndim), ndim, target.num_devices
    ).order]  # fmt: skip
    tiles = order.shape[:-1]
    exchanged = _run(array, TiledSharding(spec.sharding._devices, Tiling(tiles, order)))
    reuse = _jax.ArrayCopySemantics.REUSE_INPUT
    return result_spec.wrap(_jax.reorder_shards(exchanged._buf, target._jaxlib(ndim), reuse))


def _positions(source: Sharding, target: Sharding) -> np.ndarray:
    """For each device of the target, its position in the source."""
    positions = {d: i for i, d in enumerate(source._devices)}
    return np.array([positions[d] for d in target._devices])


def _run(array: ArrayImpl, target: Sharding) -> ArrayImpl:
    spec = array._spec
    executable = _copies.get((spec, target))
    if executable is None:
        identity = stage(lambda x: [x], [spec.aval])
        executable = _copies[spec, target] = dispatch.compile_jaxpr(
            identity, [spec], name="reshard", out_shardings=[target]
        )
    return executable([array])[0]
