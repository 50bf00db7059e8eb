"""Array methods and namespace functions required by the Python array API standard.

The standard: https://data-apis.org/array-api/2024.12.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from primax_core import device_put, devices
from primax_core.extend import Array, dtypes, register_method

from ._types import isdtype

__array_api_version__: str = "2024.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _namespace(self: Array, /, *, api_version: str | None = None) -> Any:
    """The module that implements the functions of the array API standard.

    Raises:
      ValueError: if the version of the standard is unknown.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"{api_version=} is not available; available versions are: {list(_VERSIONS)}"
        )
    return sys.modules[__name__.rpartition(".")[0]]


def _to_device(self: Array, device: Any, *, stream: Any = None) -> Array:
    """A copy of the array on a device; the array itself if it is already on it.

    Raises:
      ValueError: if ``stream`` is not ``None``: the library orders transfers itself.
    """
    if stream is not None:
        raise ValueError("to_device: streams are not supported, leave `stream` out")
    return device_put(self, device)


class ArrayNamespaceInfo:
    """Inspection object of the namespace, as defined by the array API standard."""

    def capabilities(self) -> dict[str, Any]:
        """Optional features of the standard that are supported.

        Boolean masks and shapes that depend on values are supported, except under ``jit``.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """``None``: arrays are created on the configured device, or on the first one."""
        return None

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtypes of newly created arrays."""
        return {
            "real floating": dtypes.default_float(),
            "complex floating": dtypes.default_complex(),
            "integral": dtypes.default_int(),
            "indexing": dtypes.default_int(),
        }

    def devices(self) -> list[Any]:
        """The available devices; ``None`` denotes the default device."""
        return [None, *devices()]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes that arrays can have, by name.

        Args:
          kind: a kind as for ``isdtype``, or a tuple of them.

        Raises:
          ValueError: if a kind is unknown.
        """
        available = {name: np.dtype(name) for name in _NAMES}
        if dtypes.default_int().itemsize < 8:
            available = {n: d for n, d in available.items() if d not in dtypes.wide_dtypes}
        if kind is None:
            return available
        kinds = kind if isinstance(kind, tuple) else (kind,)
        for k in kinds:
            if k not in _KINDS:
                raise ValueError(f"unrecognized kind {k!r}, expected one of {list(_KINDS)}")
        return {n: d for n, d in available.items() if isdtype(d, kinds)}


_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
_KINDS = (
    "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
    "numeric",
)  # fmt: skip


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The inspection object of this namespace, as the array API standard requires."""
    return ArrayNamespaceInfo()


register_method("__array_namespace__", _namespace, override=True)
register_method("to_device", _to_device, override=True)
