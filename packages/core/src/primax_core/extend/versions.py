"""The version of the extension API, and the check with which a package declares what it needs."""

from __future__ import annotations

import re
import sys
from typing import Final

from .._base.identity import ROOT, VENDORED

API_VERSION: Final = (1, 5)
"""Major and minor version of the extension API. Within a major version nothing is removed or
changed in meaning; a minor version adds names."""


def requires(
    distribution: str, *, since: tuple[int, int], before: tuple[int, int] | None = None
) -> None:
    """Raises an error unless the extension API has a version that ``distribution`` works with.

    Call it before any other import from the core, so that a core that does not match is reported
    as such and not by the first name that is missing. It compares two tuples; the metadata of
    installed distributions is read only for the message.

    Args:
      distribution: name under which the calling package is installed (``"primax-numpy"``).
      since: the first version of the extension API that has all that the package uses.
      before: the first version that it does not work with; by default the next major version
        after ``since``.

    Returns:
      ``None``.

    Raises:
      ImportError: :data:`API_VERSION` is not in that range. The message has both versions and the
        command that installs a core that matches.

    >>> from primax_core.extend import requires
    >>> requires("acme-solvers", since=(1, 4))
    """
    if before is None:
        before = (since[0] + 1, 0)
    if not since <= API_VERSION < before:
        raise ImportError(_mismatch(distribution, since, before))


def _mismatch(distribution: str, since: tuple[int, int], before: tuple[int, int]) -> str:
    core = ROOT.rpartition(".")[2].replace("_", "-")
    core_version = getattr(sys.modules[ROOT], "__version__", "")
    version, pin = _installed(distribution, core)
    wheel = f"{distribution} {version}".rstrip()
    solution = f"Install a matching pair: pip install --upgrade {distribution} {pin}"
    if VENDORED:
        solution = "Copy a matching pair: python -m primax_core.vendor --update"
    return (
        f"{wheel} needs version {_dotted(since)} or later of the extension API (below "
        f"{_dotted(before)}); the installed {core} {core_version} offers {_dotted(API_VERSION)}. "
        f"{solution}"
    )


def _installed(distribution: str, core: str) -> tuple[str, str]:
    """The installed version of ``distribution``, and its requirement on the core, quoted."""
    from importlib import metadata

    try:
        package = metadata.distribution(distribution)
    except (metadata.PackageNotFoundError, ValueError):
        return "", core
    for requirement in package.requires or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name and ";" not in requirement and re.sub(r"[-_.]+", "-", name[0]).lower() == core:
            return package.version, f"'{requirement}'"
    return package.version, core


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
