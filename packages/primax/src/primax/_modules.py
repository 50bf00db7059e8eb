"""The core's modules under the facade's names, so that ``import primax.lax`` works."""

from __future__ import annotations

import sys

import primax_core

for _name in ("lax", "tree", "tree_util", "dtypes", "errors"):
    sys.modules.setdefault(f"{__package__}.{_name}", getattr(primax_core, _name))
