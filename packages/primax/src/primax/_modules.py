"""The core's modules under the facade's names, so that ``import primax.lax`` works."""

from __future__ import annotations

import sys
from typing import Final

import primax_core

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
    "stages",
    "tree",
    "tree_util",
)

for _name in NAMES:
    sys.modules.setdefault(f"{__package__}.{_name}", getattr(primax_core, _name))
