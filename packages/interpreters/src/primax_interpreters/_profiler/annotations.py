"""Names of time spans in profiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from .native import Annotation

_F = TypeVar("_F", bound=Callable[..., Any])


class TraceAnnotation(Annotation):
    """Context manager that names a time span in the host's part of a profile.

    Keyword arguments are recorded with it. While no profile is recorded it costs 0.1 µs.

    >>> with TraceAnnotation("load batch", index=3):
    ...     pass
    """


class StepTraceAnnotation(TraceAnnotation):
    """Context manager that marks one training step, for the summaries of profilers.

    >>> for i in range(2):
    ...     with StepTraceAnnotation("train", step_num=i):
    ...         pass
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)  # the mark of a step's root event


def annotate_function(
    func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any
) -> Callable[..., Any]:
    """The function with its calls named in profiles.

    Args:
      name: the name of the calls; by default the function's name.
      decorator_kwargs: recorded with each call.

    >>> @annotate_function
    ... def load(path):
    ...     return path
    >>> load("a")
    'a'
    """
    if not callable(func):
        raise TypeError(f"expected a function to annotate, got {func!r}")
    called = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(func))

    @wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(called, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated
