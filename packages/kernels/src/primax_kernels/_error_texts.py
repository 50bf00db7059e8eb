"""Texts of errors, as reasons in other messages."""

from __future__ import annotations


def reason_of(error: BaseException) -> str:
    """The text of an error without the address of its page."""
    return str(error.args[0]) if error.args else str(error)
