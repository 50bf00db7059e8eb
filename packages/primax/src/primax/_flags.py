"""Options as ``absl`` flags, for programs with absl command lines."""

from __future__ import annotations

import sys
from typing import Any, Protocol


class _Options(Protocol):
    @property
    def values(self) -> dict[str, Any]: ...

    def update(self, name: str, val: Any) -> None: ...


def _absl() -> Any:
    try:
        import absl.flags  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise ImportError("flags need absl: pip install absl-py") from e
    return absl


def define_flags(options: _Options) -> None:
    """Define a flag for each option, and set the options once the flags are parsed."""
    absl = _absl()
    flags = absl.flags
    for name, value in options.values.items():
        if name in flags.FLAGS:
            continue
        define = flags.DEFINE_bool if type(value) is bool else flags.DEFINE_string
        default = value if type(value) is bool else None
        define(name, default, f"the option {name} of Primax", allow_override=True)
    import absl.app  # pyright: ignore[reportMissingImports]

    absl.app.call_after_init(lambda: set_from_flags(options, flags))


def set_from_flags(options: _Options, flags: Any) -> None:
    """Set the options whose flags were given on the command line."""
    for name, before in options.values.items():
        if name not in flags.FLAGS or not flags.FLAGS[name].present:
            continue
        value = flags.FLAGS[name].value
        if isinstance(before, (int, float)) and isinstance(value, str):
            value = type(before)(value)
        options.update(name, value)


def parse(options: _Options) -> None:
    """Define the flags and parse the command line now."""
    absl = _absl()
    define_flags(options)
    absl.flags.FLAGS(sys.argv, known_only=True)
    set_from_flags(options, absl.flags)
