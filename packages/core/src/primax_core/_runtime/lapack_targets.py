"""LAPACK on the CPU: functions included in jaxlib, registered on first use."""

from __future__ import annotations

from . import custom_calls
from .jaxlib_versions import _jax


@custom_calls.provides_custom_calls("lapack")
def _register() -> None:
    from jaxlib.cpu import _lapack  # rarely needed

    # Another library in the process may have registered them: XLA accepts the same target twice.
    # jaxlib's xla_client only records them for a handler that jax installs.
    for name, handler in _lapack.registrations().items():
        _jax.register_custom_call_target(name, handler, "Host", api_version=1)
    # Looks up the routines in scipy; a call before that ends the process.
    _lapack.initialize()
