"""Operations and their primitives."""

from typing import Any as _Any

from primax_core import lax as _public
from primax_core.lax import *


def __getattr__(name: str) -> _Any:
    return getattr(_public, name)
