"""``import primax.lax.linalg``: modules of the core under the names of the facade, when imported.

Python would look for ``primax.lax.linalg`` in the folder of the core and load a second copy of it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ._wheels import wheel


class AliasFinder(MetaPathFinder, Loader):
    """Answers for modules below some roots with the modules that they stand for.

    Args:
      roots: from the name of a root to the name of the module that it stands for.
      extras: from the name of an optional wheel's package to the extra that brings it.
    """

    def __init__(self, roots: Mapping[str, str], extras: Mapping[str, str]) -> None:
        self.roots = dict(roots)
        self.extras = dict(extras)

    def real_name(self, name: str) -> str | None:
        """What a module's name stands for; ``None`` for modules that are what they are called."""
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
        spec.loader_state = module.__spec__  # the import system is about to put the alias there
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        module.__spec__ = spec.loader_state


def install(roots: Mapping[str, str], extras: Mapping[str, str]) -> None:
    """Let ``import`` find modules below ``roots`` under their other names."""
    sys.meta_path.insert(0, AliasFinder(roots, extras))
