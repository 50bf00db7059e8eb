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
      return_string: return the text instead of printing it.

    Returns:
      ``None``, or the text: versions of the library, of jaxlib, NumPy and Python, the devices,
      the number of processes and the platform.

    The function starts the backends.

    >>> text = print_environment_info(return_string=True)
    >>> [line.partition(":")[0] for line in text.splitlines()][:3]
    ['primax', 'jaxlib', 'numpy']
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

    Callbacks run while the program goes on. After this call their effects are visible.

    Returns:
      ``None``.

    Raises:
      JaxRuntimeError: if a callback raised an error that was not raised yet; that error is the
        cause.
      RuntimeError: inside a callback.

    The exit of the process waits in the same way.

    >>> from primax_core import debug, jit
    >>> seen = []
    >>> jit(lambda x: debug.callback(lambda v: seen.append(float(v)), x))(2.0)
    >>> effects_barrier()
    >>> seen
    [2.0]
    """
    in_flight.barrier()
    for array in live_arrays():
        try:
            array.block_until_ready()
        except RuntimeError:  # deleted, or its computation failed: it has finished
            continue
