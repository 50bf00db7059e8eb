"""A hook that refuses every import of jax and remembers who asked.

jaxlib's C++ imports jax on some calls and swallows the failure, so refusing alone would go unseen:
``attempts`` keeps the stack of each. The core has to stay away from those calls.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

attempts: list[str] = []


class RefuseJax(MetaPathFinder):
    """Raises ImportError for ``jax`` and everything below it, and records the attempt."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "jax":
            return None
        stack = "".join(traceback.format_stack()[:-1])
        attempts.append(f"import of {fullname} at\n{stack}")
        raise ImportError(f"{fullname} was imported where jax must not be", name=fullname)


def install() -> None:
    """Refuses jax from now on in this process; jax must not have been imported before."""
    if "jax" in sys.modules:
        raise RuntimeError("jax was imported before the hook that refuses it")
    if not any(isinstance(finder, RefuseJax) for finder in sys.meta_path):
        sys.meta_path.insert(0, RefuseJax())
