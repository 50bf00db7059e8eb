"""Rule tables without a counterpart."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from primax_core.extend import Primitive


class IgnoredTable(dict[Primitive, Callable[..., Any]]):
    """Rule table that stores rules but never uses them, with a warning on each write.

    Args:
      name: the name of the table.
      reason: the reason why the rules are not used.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__()
        self.name: str = name
        self.reason: str = reason

    def __setitem__(self, prim: Primitive, rule: Callable[..., Any]) -> None:
        warnings.warn(
            f"the rule of {prim} in {self.name} has no effect: {self.reason}",
            UserWarning,
            stacklevel=2,
        )
        super().__setitem__(prim, rule)
