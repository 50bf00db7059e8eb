"""The core's modules under the facade's names, so that ``import primax.lax`` works."""

from __future__ import annotations

import sys
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
    "tree",
    "tree_util",
    "typing",
)

for _name in NAMES:
    sys.modules.setdefault(f"{__package__}.{_name}", getattr(primax_core, _name))

_aliases.install(
    {f"{__package__}.{name}": f"{primax_core.__name__}.{name}" for name in (*NAMES, "test_util")}
)
