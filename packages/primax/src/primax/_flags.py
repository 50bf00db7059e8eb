"""Options as ``absl`` flags, for programs that read them from the command line."""

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
    """Define a flag for each option, and take over given values once flags are parsed."""
    absl = _absl()
    flags = absl.flags
    for name, value in options.values.items():
        if name in flags.FLAGS:
            continue
        define = flags.DEFINE_bool if type(value) is bool else flags.DEFINE_string
        default = value if type(value) is bool else None
        define(name, default, f"the option {name} of Primax", allow_override=True)
    import absl.app  # pyright: ignore[reportMissingImports]

    absl.app.call_after_init(lambda: take_over(options, flags))


def take_over(options: _Options, flags: Any) -> None:
    """Set the options whose flags were given on the command line."""
    for name, before in options.values.items():
        if name not in flags.FLAGS or not flags.FLAGS[name].present:
            continue
        given = flags.FLAGS[name].value
        if isinstance(before, (int, float)) and isinstance(given, str):
            given = type(before)(given)
        options.update(name, given)


def parse(options: _Options) -> None:
    """Define the flags and read the command line now."""
    absl = _absl()
    define_flags(options)
    absl.flags.FLAGS(sys.argv, known_only=True)
    take_over(options, absl.flags)
