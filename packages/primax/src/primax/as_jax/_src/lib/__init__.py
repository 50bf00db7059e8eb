"""Names that libraries import from jax's private bindings of jaxlib."""

from typing import Any, Final

_EXTENSION_VERSIONS: Final = (((0, 12), 505), ((0, 0), 467))


def __getattr__(name: str) -> Any:
    if name == "version":
        return _version()
    if name == "jaxlib_extension_version":
        # That of jaxlib 0.12.0 or 0.10.2: libraries compare it with the number of a feature.
        return next(number for least, number in _EXTENSION_VERSIONS if _version() >= least)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version() -> tuple[int, ...]:
    """The version of the installed jaxlib."""
    from importlib.metadata import version

    numbers = version("jaxlib").split(".")
    return tuple(int(number) for number in numbers if number.isdigit())
