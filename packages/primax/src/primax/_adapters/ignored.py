"""Tables of rules that have no counterpart."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from primax_core.extend import Primitive


class IgnoredTable(dict[Primitive, Callable[..., Any]]):
    """Keeps rules that nothing asks for, and says so when one is written.

    Args:
      name: how the table is called.
      reason: why nothing asks.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__()
        self.name: str = name
        self.reason: str = reason

    def __setitem__(self, prim: Primitive, rule: Callable[..., Any]) -> None:
        warnings.warn(
            f"the rule of {prim} in {self.name} has no influence: {self.reason}",
            UserWarning,
            stacklevel=2,
        )
        super().__setitem__(prim, rule)
