"""Names of the core that the wheel ``primax-interpreters`` defines."""

from __future__ import annotations

from .identity import how_to_get, layer


def in_interpreters(module: str, name: str) -> AttributeError:
    """The error for a public name of a core module that this wheel defines."""
    return AttributeError(
        f"module {module!r} has no attribute {name!r}: it is in {layer('interpreters')}, which "
        f"{how_to_get('interpreters')} brings"
    )
