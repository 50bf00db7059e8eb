"""Native functions that exported functions may call, and safety checks that can be disabled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class DisabledSafetyCheck:
    """A disabled safety check of an exported function; see ``export(disabled_checks=...)``.

    Created by :meth:`platform` and :meth:`custom_call`.

    >>> DisabledSafetyCheck.custom_call("my_kernel")
    custom_call:my_kernel
    """

    __slots__ = ("_impl",)

    def __init__(self, _impl: str):
        self._impl: str = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allow calls on platforms for which the function was not exported."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow calls of a native function, whose meaning may change between versions."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the native function, for :meth:`custom_call`."""
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" else None

    def __eq__(self, other: object) -> bool:
        return type(other) is DisabledSafetyCheck and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)

    def __str__(self) -> str:
        return self._impl

    __repr__ = __str__


def check_disabled(checks: Iterable[Any]) -> tuple[DisabledSafetyCheck, ...]:
    """The checks as a tuple.

    Raises:
      TypeError: if a value is not a check.
    """
    disabled = tuple(checks)
    for c in disabled:
        if not isinstance(c, DisabledSafetyCheck):
            raise TypeError(
                "disabled_checks takes values of DisabledSafetyCheck, such as "
                f"DisabledSafetyCheck.platform(), got {c!r}"
            )
    return disabled


def allowed_calls(disabled: Iterable[DisabledSafetyCheck]) -> frozenset[str]:
    """The native functions that may be called although their meaning may change."""
    return frozenset(target for c in disabled if (target := c.is_custom_call()) is not None)
