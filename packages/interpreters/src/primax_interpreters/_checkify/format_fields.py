"""Format strings of checks: every field needs an argument."""

from __future__ import annotations

import string
from typing import Any, Final


class _Fields(string.Formatter):
    """Looks up the fields of a format string without formatting their values."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return value


_FIELDS: Final = _Fields()


def check_format(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise IndexError or KeyError for a field of ``text`` without an argument."""
    try:
        _FIELDS.vformat(text, args, kwargs)
    except ValueError:  # the message is formatted, and malformed text refused, when a check fails
        pass
