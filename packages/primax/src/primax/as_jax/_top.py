"""The module ``jax``: the facade's names, with the version of the reference."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Final

import primax

from . import _missing

VERSION: Final = "0.12.0.1"
"""Version of the reference that defines the facade's names and behaviour."""

VERSION_INFO: Final = tuple(map(int, VERSION.split(".")))

OWN_MODULES: Final = ("_src", "lib", "version")
"""Modules that are available as attributes of ``jax`` only."""


class Jax(ModuleType):
    """Module with the facade's names, which are cached on first access."""

    def __init__(self, name: str) -> None:
        super().__init__(name, primax.__doc__)
        self.__dict__.update(
            {n: v for n, v in vars(primax).items() if not n.startswith("_")},
            __version__=VERSION,
            __version_info__=VERSION_INFO,
            __file__=primax.__file__,
            __path__=[],
        )

    def __getattr__(self, name: str) -> Any:
        if name in OWN_MODULES:
            return import_module(f"{self.__name__}.{name}")
        try:
            value = getattr(primax, name)
        except AttributeError as e:
            _missing.note(f"{self.__name__}.{name}")
            raise AttributeError(
                str(e).replace("module 'primax'", "module 'jax'"), name=name, obj=self
            ) from None
        if isinstance(value, ModuleType) and not name.startswith("_"):
            import_module(f"{self.__name__}.{name}")  # libraries look it up in sys.modules
        self.__dict__[name] = value
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its name, as cloudpickle does modules of exactly ``ModuleType``."""
        return import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(primax), *OWN_MODULES})
