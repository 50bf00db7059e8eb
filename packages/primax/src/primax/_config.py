"""``primax.config``: the core's options, also under the reference's names."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from primax_core import config as _core

_PREFIX: Final = "jax_"
_RENAMED: Final = {"x64_enabled": "enable_x64", "platform_name": "platforms"}


def _own_name(name: str) -> str | None:
    """Return the core's name of an option, or ``None`` if the core does not have it."""
    bare = name.removeprefix(_PREFIX)
    bare = _RENAMED.get(bare, bare)
    return bare if bare in _core.values else None


class Config:
    """Options: read one as an attribute, set one with :meth:`update`.

    Each option of the core has its own name and the reference's (``enable_x64`` and
    ``jax_enable_x64``). Options of the reference without a counterpart in Primax are accepted and
    stored; setting one to a value other than its default warns that it has no effect.
    """

    __slots__ = ()

    def update(self, name: str, val: Any) -> None:
        """Set an option for all threads that do not override it with a context manager.

        Raises:
          AttributeError: for an unknown option.
          ValueError: for an invalid value.
        """
        own = _own_name(name)
        if own is None:
            from . import _other_options

            _other_options.update(name, val)
            return
        if own == "platforms" and val == "":
            val = None
        _core.update(own, val)

    def read(self, name: str) -> Any:
        """Return the value for threads without an override."""
        own = _own_name(name)
        if own is None:
            from . import _other_options

            return _other_options.read(name)
        return _core.read(own)

    _read = read

    @property
    def values(self) -> dict[str, Any]:
        """The current values in this thread, by the reference's names."""
        from . import _other_options

        return {
            **_other_options.values(),
            **{_PREFIX + name: value for name, value in _core.values.items()},
        }

    def config_with_absl(self) -> None:
        """Define an ``absl`` flag for each option (``--jax_enable_x64``); parsing the flags sets
        it.
        """
        from ._flags import define_flags

        define_flags(self)

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Set the options whose ``absl`` flags were given."""
        from ._flags import set_from_flags

        set_from_flags(self, absl_flags)

    def parse_flags_with_absl(self) -> None:
        """Define the flags and parse the command line."""
        from ._flags import parse

        parse(self)

    def __getattr__(self, name: str) -> Any:
        own = _own_name(name)
        if own is not None:
            return getattr(_core, own)
        from . import _other_options

        return _other_options.read(name)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"set the option with config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *_core.values, *self.values})


config: Final = Config()
