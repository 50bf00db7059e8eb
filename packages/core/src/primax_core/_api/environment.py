"""Versions and devices of this process, and the barrier for effects."""

from __future__ import annotations

import platform
import sys

import numpy as np

from .._base.identity import PUBLIC_NAME, ROOT
from .._runtime import in_flight
from .._runtime.devices import local_devices, process_count
from .._runtime.jaxlib_versions import build
from .._runtime.live import live_arrays


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions and devices, for bug reports.

    Args:
      return_string: return the text instead.
    """
    devices = local_devices()
    kinds = ", ".join(sorted({d.device_kind for d in devices}))
    text = "\n".join((
        f"{PUBLIC_NAME}: {sys.modules[ROOT].__version__}",
        f"jaxlib: {build()[0]}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"devices: {len(devices)} local, {kinds}",
        f"process_count: {process_count()}",
        f"platform: {platform.platform()}",
    ))  # fmt: skip
    if return_string:
        return text
    print(text)
    return None


def effects_barrier() -> None:
    """Wait until all started computations and their side effects have finished.

    Raises:
      JaxRuntimeError: if a callback raised an error that was not raised yet; that error is the
        cause.
      RuntimeError: inside a callback.

    >>> effects_barrier()
    """
    in_flight.barrier()
    for array in live_arrays():
        try:
            array.block_until_ready()
        except RuntimeError:  # deleted, or its computation failed: it has finished
            continue
