"""The core's modules under the facade's names, so that ``import primax.lax`` works."""

from __future__ import annotations

from typing import Final

import primax_core

from . import _aliases

NAMES: Final = (
    "ad_checkpoint",
    "custom_batching",
    "custom_derivatives",
    "dlpack",
    "dtypes",
    "errors",
    "extend",
    "flatten_util",
    "lax",
    "memory",
    "stages",
    "test_util",
    "tree",
    "tree_util",
    "typing",
)

_aliases.install({f"{__package__}.{name}": f"{primax_core.__name__}.{name}" for name in NAMES})
