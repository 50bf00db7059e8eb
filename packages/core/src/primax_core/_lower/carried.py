"""Executables that survive the change of a generation of processes, serialized.

A process that leaves a generation gets a new client, which can load the executables of the old one:
a survivor then traces and lowers its functions again, but XLA does not compile them again. On CPUs
only: processes with GPUs compile a module together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .._runtime.processes import before_forgetting
from .compile import carried, carried_key, loaded_executables

_LIMIT: Final = 512


@before_forgetting
def _serialize() -> Callable[[], None]:
    """Serialize what is loaded; the returned function stores it after the caches are empty."""
    blobs = dict(carried)
    for (digest, devices, options), loaded in loaded_executables():
        client = devices[0].client
        key = carried_key(digest, devices, options)
        if client.platform != "cpu" or loaded.from_bytes or key in blobs:
            continue
        try:
            blobs[key] = client.serialize_executable(loaded.raw)
        except Exception:  # it contains what cannot be serialized, and is compiled again
            continue

    def store() -> None:
        for key in list(blobs)[-_LIMIT:]:
            carried[key] = blobs[key]

    return store
