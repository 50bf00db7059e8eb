"""Names of the core that the wheel ``primax-interpreters`` defines."""

from __future__ import annotations


def in_interpreters(module: str, name: str) -> AttributeError:
    """The error for a public name of a core module that this wheel defines."""
    wheel = f"{module.partition('.')[0].removesuffix('_core')}_interpreters"
    return AttributeError(
        f"module {module!r} has no attribute {name!r}: it is in {wheel}, which "
        f"pip install {wheel.replace('_', '-')} brings"
    )
