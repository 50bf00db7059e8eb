"""The error class that jaxlib defines and raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:

    class JaxRuntimeError(RuntimeError):
        """XLA could not compile a module, or an executable failed. Defined by jaxlib."""

else:
    from .jaxlib_versions import JaxRuntimeError as JaxRuntimeError
