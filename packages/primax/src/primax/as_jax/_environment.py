"""Options from environment variables with the reference's names."""

from __future__ import annotations

import os
import warnings

from .._config import config

_PREFIX = "JAX_"


def read_options() -> None:
    """Set the options given by ``JAX_...`` variables unless ``PRIMAX_...`` variables set them."""
    known = {name.upper(): name for name in config.values}
    for variable, text in os.environ.items():
        name = known.get(variable)
        if name is None:
            continue
        own = variable.removeprefix(_PREFIX)
        if f"PRIMAX_{own}" in os.environ:
            continue
        before = config.read(name)
        try:
            config.update(name, _parsed(text, before))
        except (ValueError, AttributeError) as e:
            warnings.warn(
                f"The environment variable {variable}={text!r} is ignored: {e}",
                UserWarning,
                stacklevel=3,
            )


def _parsed(text: str, before: object) -> object:
    """Parse the text as a value of the same type as ``before``."""
    if before is None and text.strip().lower() in ("", "none"):
        return None
    if type(before) in (int, float):
        return type(before)(text)  # type: ignore[operator]
    return text
