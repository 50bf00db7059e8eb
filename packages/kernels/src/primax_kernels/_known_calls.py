"""Kernel calls by content: a new `pallas_call` of an equal kernel finds what is known about it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from primax_core import ShapeDtypeStruct, tree_util
from primax_core.extend import Tracer
from primax_core.extend.runtime import bounded_cache

from ._block_specs import BlockSpec, GridSpec, NoBlockSpec, PrefetchScalarGridSpec
from ._content import NoKey, content_key, sequence_key
from ._memory_spaces import MemoryRef

_known: Final = bounded_cache(1024)
"""Calls by key, with the objects whose identity is part of the key."""


def call_key(parts: tuple[Any, ...], referents: list[Any]) -> Hashable:
    """The key of a call, or ``None`` if it depends on mutable values.

    Args:
      parts: kernel, name, grid specification, ``out_shape``, aliases, parameters of compilers.
      referents: receives the objects whose identity is part of the key.
    """
    kernel, name, spec, out_shape, aliases, compiler_params = parts
    try:
        return (
            content_key(kernel, referents), name, _grid_key(spec, referents),
            _shapes_key(out_shape, referents), aliases, _parameters_key(compiler_params, referents),
        )  # fmt: skip
    except NoKey:
        return None


def known_call(key: Hashable) -> Any:
    """The call with a key, or ``None``."""
    entry = _known.get(key)
    return None if entry is None else entry[0]


def remember(key: Hashable, call: Any, referents: list[Any]) -> None:
    """Store a call under a key."""
    _known[key] = call, referents


def without_values(out_shape: Any) -> Any:
    """``out_shape`` with types in place of arrays, which a stored call must not keep."""

    def struct(leaf: Any) -> Any:
        is_value = isinstance(leaf, Tracer) or hasattr(leaf, "__array__")
        return ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_value else leaf

    return tree_util.tree_map(struct, out_shape)


def _grid_key(spec: GridSpec, referents: list[Any]) -> Hashable:
    if type(spec) not in (GridSpec, PrefetchScalarGridSpec):
        raise NoKey(spec)
    return (
        content_key(spec.grid, referents), spec.num_scalar_prefetch,
        _specs_key(spec.in_specs, referents), _specs_key(spec.out_specs, referents),
        _scratch_key(spec.scratch_shapes, referents),
    )  # fmt: skip


def _specs_key(x: Any, referents: list[Any]) -> Hashable:
    kind = type(x)
    if kind is BlockSpec:
        index_map = None if x.index_map is None else content_key(x.index_map, referents)
        key = index_map, content_key((x.block_shape, x.memory_space, x.pipeline_mode), referents)
    elif kind is tuple or kind is list:
        key = kind, *[_specs_key(entry, referents) for entry in x]
    elif x is None or kind is NoBlockSpec:
        key = kind
    else:
        raise NoKey(x)
    return key


def _scratch_key(x: Any, referents: list[Any]) -> Hashable:
    if any(hasattr(leaf, "__array__") for leaf in tree_util.tree_leaves(x)):
        raise NoKey(x)  # an array, which a stored call must not keep
    return _shapes_key(x, referents)


def _shapes_key(x: Any, referents: list[Any]) -> Hashable:
    """The shapes and dtypes of results, or of scratch memory."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind, *[_shapes_key(entry, referents) for entry in x]
    if kind is MemoryRef:
        return x.shape, x.dtype, content_key(x.memory_space, referents)
    if hasattr(x, "get_ref_aval"):
        return content_key(x, referents)
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return tuple(x.shape), x.dtype
    return content_key(x, referents)


def _parameters_key(x: Any, referents: list[Any]) -> Hashable:
    if isinstance(x, dict):
        return dict, *[(k, sequence_key(v, referents)) for k, v in x.items()]
    return sequence_key(x, referents)
