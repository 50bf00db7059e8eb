"""The reference's private ``compiler``: a function that libraries patch to forbid compilation."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

from primax_core.extend import guarded_compilation as _guarded_compilation


def backend_compile_and_load(backend: Any, *args: Any, **kwargs: Any) -> None:
    """Called with the client before each compilation; a replacement may raise an error."""


_own = backend_compile_and_load
_guard: AbstractContextManager[None] | None = None


class _Replaceable(ModuleType):
    """Module that detects the replacement of the function above."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == _own.__name__:
            _watch(value)


def _watch(function: Any) -> None:
    global _guard
    if _guard is not None:
        _guard.__exit__(None, None, None)
        _guard = None
    if function is not _own:
        _guard = _guarded_compilation(function)
        _guard.__enter__()


sys.modules[__name__].__class__ = _Replaceable
