"""The reference's private name of :mod:`primax.interpreters.batching`."""

from typing import Any as _Any

from primax.interpreters import batching as _public
from primax.interpreters.batching import *


def __getattr__(name: str) -> _Any:
    try:
        return getattr(_public, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
