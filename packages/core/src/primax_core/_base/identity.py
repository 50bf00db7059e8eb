"""Names by which this package is known; ``python -m primax_core.vendor`` changes them in copies."""

from __future__ import annotations

from typing import Final

ROOT: Final = __name__.removesuffix("._base.identity")
"""Import name of the package; in a copy, for example ``acme._vendor.primax_core``."""

ENV_PREFIX: Final = "PRIMAX_"
"""First part of the names of the environment variables."""

CACHE_FOLDER: Final = "primax"
"""Name of the folder of the cache on disk, in the user's cache folder."""

PUBLIC_NAME: Final = "primax"
"""Import name that users know: the facade, or the copy itself."""

DOCS_URL: Final = "https://primax.readthedocs.io/en/latest/"
"""Address of the documentation, for error messages and READMEs; the same in copies."""

VENDORED: Final = False
"""True in a copy."""


def is_own(module: object) -> bool:
    """Return True if a module of this name belongs to the package."""
    return isinstance(module, str) and (module == ROOT or module.startswith(ROOT + "."))


def layer(name: str) -> str:
    """Import name of the package of a layer: ``layer("numpy")`` is ``primax_numpy``."""
    return f"{ROOT.removesuffix('_core')}_{name}"


def how_to_get(name: str) -> str:
    """The command that installs a layer, or adds it to the folder of a copy."""
    if VENDORED:
        return f"python -m primax_core.vendor --update --with {name}"
    return f"pip install {layer(name).replace('_', '-')}"
