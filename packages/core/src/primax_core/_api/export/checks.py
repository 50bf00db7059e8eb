"""What an exported program may call, and which of the checks a user can switch off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._base.errors import InvalidArtifactError
from ..._lower.lazy import inspection, portable


class DisabledSafetyCheck:
    """A check that is not made of an exported program; see ``export(disabled_checks=...)``.

    Made by :meth:`platform` and :meth:`custom_call`.

    >>> DisabledSafetyCheck.custom_call("my_kernel")
    custom_call:my_kernel
    """

    __slots__ = ("_impl",)

    def __init__(self, _impl: str):
        self._impl: str = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Let the program be called on platforms that it was not exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let the program call this native function, whose meaning may change between versions."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the native function, for checks of :meth:`custom_call`."""
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
      TypeError: if one is something else.
    """
    found = tuple(checks)
    for c in found:
        if not isinstance(c, DisabledSafetyCheck):
            raise TypeError(
                "disabled_checks takes values of DisabledSafetyCheck, such as "
                f"DisabledSafetyCheck.platform(), got {c!r}"
            )
    return found


def refused_targets(module: Any, disabled: Sequence[DisabledSafetyCheck]) -> dict[str, str]:
    """The native functions that a module calls and may not, each with the text of one call."""
    allowed = {c.is_custom_call() for c in disabled}
    return {
        target: text
        for target, text in portable.targets_of(module).items()
        if portable.is_callback(target) or not (target in allowed or portable.is_stable(target))
    }


def check_module(module: Any, disabled: Sequence[DisabledSafetyCheck]) -> None:
    """Refuse a module that was read and holds or calls what it may not.

    Raises:
      InvalidArtifactError: saying what.
    """
    inspection.inspect(module)
    refused = refused_targets(module, disabled)
    if refused:
        target, text = next(iter(refused.items()))
        raise InvalidArtifactError(
            f"the artifact's module calls the native function {target!r}, which is none of those "
            "that a program may call and was not allowed with "
            f"DisabledSafetyCheck.custom_call when it was exported:\n{text[:500]}"
        )
