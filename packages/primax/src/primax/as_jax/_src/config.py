"""Options."""

from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager
from typing import Any as _Any

import primax as _primax
from primax import _other_options, config as config


class State:
    """An option without an effect in Primax.

    ``config.option.value`` reads it, and ``with config.option(value):`` sets it. The options
    of the core are context managers of the same interface (``enable_x64``, ...).
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def value(self) -> _Any:
        """The current value."""
        return _other_options.read(self.name)

    @_contextmanager
    def __call__(self, new_val: _Any) -> _Iterator[None]:
        """A context in which the option has another value."""
        before = self.value
        _other_options.update(self.name, new_val)
        try:
            yield
        finally:
            _other_options.update(self.name, before)


def __getattr__(name: str) -> _Any:
    for full in (name, f"jax_{name}"):
        if full in _other_options.values():
            return State(full)
    if hasattr(_primax, name):
        return getattr(_primax, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
