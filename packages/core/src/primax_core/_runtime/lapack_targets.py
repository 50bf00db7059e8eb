"""LAPACK on the CPU: the functions that jaxlib carries, registered when a program needs them."""

from __future__ import annotations

from . import custom_calls
from .jaxlib_versions import _jax


@custom_calls.provides_custom_calls("lapack")
def _register() -> None:
    from jaxlib.cpu import _lapack  # not with this page: it is needed by few programs

    # Another library in the process may have registered them: XLA allows the same ones twice.
    # jaxlib's xla_client only notes them down for a handler that jax installs.
    for name, handler in _lapack.registrations().items():
        _jax.register_custom_call_target(name, handler, "Host", api_version=1)
    # It looks the routines up in scipy; calling one before that ends the process.
    _lapack.initialize()
