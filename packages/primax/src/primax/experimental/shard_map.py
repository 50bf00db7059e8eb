"""The former place of ``shard_map``: the reference's ``jax.experimental.shard_map``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

from .._several_devices import of_wheel as _of_wheel
from primax_core.typing import PyTree as _PyTree


def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: _PyTree,
    out_specs: _PyTree,
    check_rep: bool = True,
    auto: Collection[Hashable] = frozenset(),
) -> Any:
    """Apply a function to the parts of arrays on each device; see ``primax.shard_map``.

    Args:
      check_rep: the former name of ``check_vma``.
      auto: the axes that are not manual.
    """
    return _of_wheel("primax", "shard_map")(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep,
        axis_names=frozenset(mesh.axis_names) - frozenset(auto),
    )  # fmt: skip
