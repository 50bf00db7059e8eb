"""Parameters of the compiler for GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from primax_core.extend import Jaxpr, walk

from . import types


@dataclass(frozen=True)
class Resolved:
    """Parameters without defaults; ``chosen`` are the names of those that the user gave."""

    num_warps: int
    num_stages: int
    chosen: frozenset[str]


def resolve(params: Any, jaxpr: Jaxpr) -> Resolved:
    """Parameters with the defaults for a kernel: 4 warps, or 8 for large tensors; 3 stages.

    Args:
      params: a `triton.CompilerParams`, a mapping, an object with these attributes, or ``None``.
    """
    chosen = {name: _attribute(params, name) for name in ("num_warps", "num_stages")}
    defaults = {"num_warps": 8 if _largest(jaxpr) >= 16384 else 4, "num_stages": 3}
    values = {name: defaults[name] if x is None else x for name, x in chosen.items()}
    return Resolved(**values, chosen=frozenset(n for n, x in chosen.items() if x is not None))


def _attribute(params: Any, name: str) -> Any:
    return params.get(name) if isinstance(params, Mapping) else getattr(params, name, None)


def _largest(jaxpr: Jaxpr) -> int:
    """The number of elements of the largest tensor."""
    shapes = [v.aval.shape for eqn in walk(jaxpr) for v in eqn.outvars if hasattr(v.aval, "shape")]
    return max((math.prod(types.padded(s)) for s in shapes), default=1)
