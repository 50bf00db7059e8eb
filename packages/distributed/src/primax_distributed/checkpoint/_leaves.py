"""Leaves of saved trees: their records in the metadata, and copies of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from primax_core import Array, lax
from primax_core.extend import dtypes, random_unwrap_p

from .._named import NamedSharding
from ._stores import Bounds, chunk_shape, host_parts
from ._structure import Path, path_text

_SCALARS: Final = {bool: "bool", int: "int", float: "float", complex: "complex", str: "str"}
SCALAR_TYPES: Final[dict[str, Any]] = {name: kind for kind, name in _SCALARS.items()}


@dataclass
class Values:
    """The parts of an array that this process writes, and the type of what is stored."""

    shape: tuple[int, ...]
    dtype: np.dtype
    chunks: list[int]
    parts: list[tuple[Bounds, np.ndarray]]


def stored_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype in the store: that of NumPy, bfloat16, or unsigned integers of the same size.

    >>> stored_dtype(np.float32)
    dtype('float32')
    """
    element: np.dtype[Any] = np.dtype(dtype)
    if element.name == "bfloat16" or (element.isbuiltin == 1 and element.kind in "biufc"):
        return element
    return np.dtype(f"uint{8 * element.itemsize}")


def is_key_dtype(dtype: Any) -> bool:
    """Return True for dtypes that are defined by other arrays, such as those of random keys."""
    return isinstance(dtype, dtypes.ExtendedDType)


def describe(path: Path, leaf: Any, alone: bool) -> tuple[dict[str, Any], Values | None]:
    """The record of a leaf, and what this process writes of it.

    Args:
      path: the position, for messages.
      leaf: an array of any kind, or a Python value.
      alone: this process writes values that all processes have.

    Raises:
      TypeError: a value of this type cannot be saved.
      RuntimeError: the array is deleted.
    """
    kind = _SCALARS.get(type(leaf))
    if kind is not None:
        return {"path": list(path), "kind": kind, "value": _encoded(leaf)}, None
    record: dict[str, Any] = {"path": list(path), "kind": "array"}
    if isinstance(leaf, Array):
        shape, dtype = leaf.shape, leaf.dtype
        record |= {"shape": list(shape), "dtype": str(dtype)}
        if sharding := _sharding_record(leaf.sharding):
            record["sharding"] = sharding
        if is_key_dtype(dtype):
            record["key_impl"] = getattr(getattr(dtype, "impl", None), "name", str(dtype))
            leaf = random_unwrap_p.bind(leaf)
        here = alone or not leaf.is_fully_addressable
        values = _values_of(leaf, _parts_of(leaf) if here else [])
    elif isinstance(leaf, (np.ndarray, np.generic)):
        if leaf.dtype.hasobject or leaf.dtype.kind in "SUMm" or leaf.dtype.fields:
            raise TypeError(
                f"the leaf at {path_text(path)} has dtype {leaf.dtype}, which cannot be saved"
            )
        record |= {"kind": "numpy", "shape": list(leaf.shape), "dtype": leaf.dtype.name}
        everything = tuple([(0, n) for n in leaf.shape])
        native = leaf.dtype.newbyteorder("=")
        values = _values_of(leaf, [(everything, np.array(leaf, native))] if alone else [])
    else:
        raise TypeError(
            f"the leaf at {path_text(path)} has type {type(leaf).__name__}, which cannot be saved. "
            "Leaves are arrays, Python numbers and strings; None and registered classes are nodes"
        )
    record |= {"stored_shape": list(values.shape), "stored": values.dtype.name}
    record["chunks"] = values.chunks
    return record, values


def _values_of(x: Any, parts: list[tuple[Bounds, np.ndarray]]) -> Values:
    dtype = stored_dtype(x.dtype)
    shape = tuple(x.shape)
    part = x.sharding.shard_shape(shape) if isinstance(x, Array) else shape
    parts = [(bounds, values.view(dtype)) for bounds, values in parts if values.size]
    return Values(shape, dtype, chunk_shape(part, dtype.itemsize), parts)


def _parts_of(x: Array) -> list[tuple[Bounds, np.ndarray]]:
    if x.sharding.num_devices == 1 or dtypes.itemsize_bits(x.dtype) >= 8:
        return host_parts(x)
    # jaxlib 0.10 cannot take arrays of less than a byte for each element apart.
    wide = "float32" if x.dtype.name.startswith("float") else "int8"
    wide = "uint8" if x.dtype.name.startswith("uint") else wide
    parts = host_parts(lax.convert_element_type(x, wide))
    return [(bounds, values.astype(x.dtype)) for bounds, values in parts]


def _sharding_record(sharding: Any) -> dict[str, Any] | None:
    if not isinstance(sharding, NamedSharding):
        return None
    mesh = sharding.mesh
    if not all(isinstance(name, str) for name in mesh.axis_names):
        return None
    return {
        "mesh": [[n, s, t.name] for (n, s), t in zip(mesh.shape.items(), mesh.axis_types)],
        "spec": [_entry_record(entry) for entry in sharding.spec],
    }


def _entry_record(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return list(entry) if isinstance(entry, tuple) else []


def _encoded(value: Any) -> Any:
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, complex):
        return [value.real.hex(), value.imag.hex()]
    return str(value) if type(value) is int else value


def decoded(record: dict[str, Any]) -> Any:
    """The Python value of a record."""
    kind, value = record["kind"], record["value"]
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(*map(float.fromhex, value))
    return int(value) if kind == "int" else value
