"""Frames that tracebacks leave out, in the reference's convention."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final, TypeVar

from primax_core.extend import (
    fold_traceback,
    is_internal_code,
    register_internal_path,
    unregister_internal_path,
)

F = TypeVar("F", bound=Callable[..., Any])


class _Paths(list[str]):
    """Paths that are left out; one that is put in is registered with the library."""

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
    """Leave the frames of a file or folder out of tracebacks, as the library's own."""
    exclude_paths.append(path)


def include_frame(f: FrameType) -> bool:
    """Whether a frame is the user's, and so shown in tracebacks."""
    return not is_internal_code(f.f_code)


def api_boundary(fun: F, **options: Any) -> F:
    """Decorator of a public function: errors leave it without the library's own frames.

    Args:
      options: of the reference; they have no influence.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            fold_traceback(error)
            raise

    return call  # type: ignore[return-value]
