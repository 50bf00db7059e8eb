"""Traceback filtering in the reference's convention."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final, TypeVar

from primax_core.extend import (
    is_internal_code,
    register_internal_path,
    unregister_internal_path,
)
from primax_core.extend.runtime import fold_traceback

F = TypeVar("F", bound=Callable[..., Any])


class _Paths(list[str]):
    """List of hidden paths; appending a path registers it with the library."""

    def append(self, path: str) -> None:
        super().append(path)
        register_internal_path(path)

    def remove(self, path: str) -> None:
        super().remove(path)
        if path not in self:
            unregister_internal_path(path)

    def extend(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.append(path)


exclude_paths: Final = _Paths()


def register_exclusion(path: str) -> None:
    """Hide the frames of a file or folder in tracebacks, like the library's own."""
    exclude_paths.append(path)


def include_frame(f: FrameType) -> bool:
    """Return True for a user frame, which tracebacks show."""
    return not is_internal_code(f.f_code)


def api_boundary(fun: F, **options: Any) -> F:
    """Decorate a public function: hide the library's frames in the errors it raises.

    Args:
      options: the reference's options, which are ignored.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            fold_traceback(error)
            raise

    return call  # type: ignore[return-value]
