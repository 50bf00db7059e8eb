"""Import aliases: ``import primax.lax.linalg`` imports the module of the core.

Without them, Python would find ``primax.lax.linalg`` in the folder of the core and load a second
copy.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._wheels import wheel

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # ``importlib.abc`` imports 25 modules, which take longer than this wheel

    class Loader:
        """A loader has ``create_module`` and ``exec_module``."""

    class MetaPathFinder:
        """A finder has ``find_spec``."""


class AliasFinder(MetaPathFinder, Loader):
    """Module finder that imports the target module for each aliased name.

    Args:
      roots: target module by aliased root name.
      extras: extra that installs an optional wheel, by package name.
    """

    def __init__(self, roots: Mapping[str, str], extras: Mapping[str, str]) -> None:
        self.roots = dict(roots)
        self.extras = dict(extras)

    def real_name(self, name: str) -> str | None:
        """Return the target name of an aliased module, or ``None`` for other modules."""
        for root, real in self.roots.items():
            if name == root or name.startswith(root + "."):
                return real + name[len(root) :]
        return None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        real = self.real_name(fullname)
        return None if real is None else ModuleSpec(fullname, self, origin=real)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        assert spec.origin is not None
        module = wheel(spec.origin, self.extras.get(spec.origin.partition(".")[0]))
        spec.loader_state = module.__spec__  # the import system will overwrite it with the alias
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        module.__spec__ = spec.loader_state


def install(roots: Mapping[str, str], extras: Mapping[str, str]) -> None:
    """Install the finder for the modules below ``roots``."""
    sys.meta_path.insert(0, AliasFinder(roots, extras))
