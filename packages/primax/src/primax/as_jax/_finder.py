"""Module finder that maps ``jax`` to the facade's modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final

from .. import _modules
from .._aliases import AliasFinder, Loader, MetaPathFinder
from . import _absent, _host_results, _missing, _src
from ._environment import read_options
from ._top import OWN_MODULES, Jax

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

NAME: Final = "jax"


class JaxFinder(AliasFinder):
    """Finder that maps ``jax.x`` to ``primax.x`` and ``jax._src.x`` to an adapter of this package.

    The modules are the facade's own, under a second name; only ``jax`` itself is a separate module.
    Names that the facade does not have are rejected here, so that no part of a real jax is loaded.
    """

    def __init__(self) -> None:
        facade = __package__.rpartition(".")[0]
        own = {f"{NAME}.{name}": f"{__package__}.{name}" for name in OWN_MODULES}
        own[f"{NAME}.experimental.pallas.ops.tpu"] = f"{__package__}._tpu_kernels"
        super().__init__({**own, NAME: facade}, _modules.EXTRAS)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == NAME:
            return ModuleSpec(NAME, TopLoader(), is_package=True)
        absent = _absent.find_spec(fullname)
        if absent is not None:
            return absent
        return super().find_spec(fullname, path, target)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        assert spec.origin is not None
        private = f"{NAME}._src."
        try:
            if spec.name.startswith(private):
                _src.load(spec.name.removeprefix(private))
            return super().create_module(spec)
        except ModuleNotFoundError as e:
            if e.name is None or not spec.origin.startswith(e.name):
                raise
            _missing.note(spec.name)
            what = "private to the reference; " if spec.name.startswith(f"{NAME}._src") else ""
            raise ModuleNotFoundError(
                f"No module named {spec.name!r}: {what}Primax has no counterpart", name=spec.name
            ) from None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        name = module.__spec__.name
        _missing.observe(name, module)
        super().exec_module(module)
        if name == f"{NAME}.numpy":
            _host_results.replace(module)

    @staticmethod
    def find_distributions(
        context: DistributionFinder.Context | None = None,
    ) -> Iterator[Distribution]:
        """Return a distribution ``jax`` with the version of the module ``jax``."""
        if context is not None and context.name == NAME:
            from ._distribution import Metadata

            yield Metadata()


class TopLoader(Loader):
    """Loader of the module ``jax``."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Create a module with the facade's names."""
        return Jax(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Read the options again, because programs set ``JAX_...`` variables before they import
        jax; and import the modules that are attributes, as libraries look in ``sys.modules``."""
        read_options()
        for name, value in [*vars(module).items()]:
            if isinstance(value, ModuleType) and value.__name__ != __package__:
                import_module(f"{NAME}.{name}")


def install() -> None:
    """Insert the finder before all others; a second call has no effect.

    Raises:
      ImportError: if the real jax is already imported.
    """
    if any(isinstance(f, JaxFinder) for f in sys.meta_path):
        return
    real = sys.modules.get(NAME)
    if real is not None:
        raise ImportError(
            f"jax is already imported, from {getattr(real, '__file__', None) or real!r}: modules "
            "that use it keep it. Call primax.as_jax.install() before the first "
            "`import jax`, or run the program with `python -m primax.as_jax program.py` (tests "
            "with `pytest -p primax.as_jax.pytest`)."
        )
    finder: MetaPathFinder = JaxFinder()
    sys.meta_path.insert(0, finder)


def uninstall() -> None:
    """Remove the finder and the modules of ``jax``."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, JaxFinder)]
    _absent.remove()
    _host_results.restore()
    for name in [n for n in sys.modules if n == NAME or n.startswith(NAME + ".")]:
        del sys.modules[name]
