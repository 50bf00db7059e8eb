"""``jax.lib.xla_bridge``: the former location of :mod:`primax.extend.backend`."""

from __future__ import annotations

from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    if name in ("get_backend", "backends"):
        from ... import _deprecations
        from ...extend import backend

        instead = f"jax.extend.backend.{name}"
        return _deprecations.deprecated("jax.lib.xla_bridge", name, getattr(backend, name), instead)
    if name in ("default_backend", "device_count", "devices", "local_devices", "process_index"):
        import primax

        from ... import _deprecations

        return _deprecations.deprecated(
            "jax.lib.xla_bridge", name, getattr(primax, name), f"jax.{name}"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
