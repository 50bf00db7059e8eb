"""What ``import jax...`` finds: the facade's modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from .. import _modules
from .._aliases import AliasFinder
from ._top import OWN_MODULES, VERSION, Jax

NAME: Final = "jax"


class JaxFinder(AliasFinder):
    """Finds ``jax.x`` as ``primax.x`` and ``jax._src.x`` as an adapter of this package.

    Modules are the facade's own, under a second name; only ``jax`` itself is a module apart. Names
    that the facade does not know are refused here, so that a real jax beside it is never loaded in
    parts.
    """

    def __init__(self) -> None:
        facade = __package__.rpartition(".")[0]
        own = {f"{NAME}.{name}": f"{__package__}.{name}" for name in OWN_MODULES}
        super().__init__({**own, NAME: facade}, _modules.EXTRAS)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == NAME:
            return ModuleSpec(NAME, TopLoader(), is_package=True)
        return super().find_spec(fullname, path, target)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        assert spec.origin is not None
        try:
            return super().create_module(spec)
        except ModuleNotFoundError as e:
            if e.name is None or not spec.origin.startswith(e.name):
                raise
            what = "private to the reference; " if spec.name.startswith(f"{NAME}._src") else ""
            raise ModuleNotFoundError(
                f"No module named {spec.name!r}: {what}Primax has no counterpart", name=spec.name
            ) from None

    @staticmethod
    def find_distributions(
        context: DistributionFinder.Context | None = None,
    ) -> Iterator[Distribution]:
        """Answers ``importlib.metadata.version("jax")`` with the version that ``jax`` tells."""
        if context is not None and context.name == NAME:
            yield _Metadata()


class TopLoader(Loader):
    """Makes the module ``jax``."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module whose names are the facade's."""
        return Jax(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run."""


class _Metadata(Distribution):
    """Name and version of what stands in for jax."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"

    def locate_file(self, path: Any) -> Path:
        """Where a file of the facade lies."""
        return Path(__file__).parent.parent / path


def install() -> None:
    """Put the finder before all others; a second call changes nothing.

    Raises:
      ImportError: if the real jax is imported already.
    """
    if any(isinstance(f, JaxFinder) for f in sys.meta_path):
        return
    found = sys.modules.get(NAME)
    if found is not None:
        raise ImportError(
            f"jax is already imported, from {getattr(found, '__file__', None) or found!r}: modules "
            "that hold it would go on using it. Call primax.as_jax.install() before the first "
            "`import jax`, or run the program with `python -m primax.as_jax program.py` (tests "
            "with `pytest -p primax.as_jax.pytest`)."
        )
    finder: MetaPathFinder = JaxFinder()
    sys.meta_path.insert(0, finder)
    import_module(NAME)


def uninstall() -> None:
    """Take the finder and the names below ``jax`` away."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, JaxFinder)]
    for name in [n for n in sys.modules if n == NAME or n.startswith(NAME + ".")]:
        del sys.modules[name]
