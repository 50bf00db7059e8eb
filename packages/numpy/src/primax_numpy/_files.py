"""Arrays from and to files, bytes, texts, iterators and other libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from primax_core import dlpack
from primax_core.extend import Array, dtypes

from ._creation import asarray


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array with the values of another library's array; see ``primax.dlpack.from_dlpack``.

    Args:
      device: where the result lies; by default where the values are.
      copy: ``True`` copies always, ``False`` never; by default memory is shared where possible.
    """
    return dlpack.from_dlpack(x, device=device, copy=copy)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """An array of the numbers whose bytes a buffer holds.

    Args:
      buffer: bytes, or another object with a buffer.
      dtype: type of the numbers in the buffer; ``float`` is 64 bits there.
      count: how many to read; all by default.
      offset: how many bytes to leave out first.
    """
    return asarray(np.frombuffer(buffer, dtype=_host_dtype(dtype), count=count, offset=offset))


def fromfile(
    file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0
) -> Array:
    """An array of the numbers in a file, which is read now: not when a compiled program runs.

    Args:
      file: an open file or a path.
      dtype: type of the numbers in the file; ``float`` is 64 bits there.
      count: how many to read; all by default.
      sep: what stands between numbers written as text; ``""`` for bytes.
      offset: how many bytes to leave out first, of files of bytes.
    """
    dtype = _host_dtype(dtype)
    return asarray(np.fromfile(file, dtype=dtype, count=count, sep=sep, offset=offset))


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1) -> Array:
    """An array of the numbers that an iterator gives, which is run now.

    Args:
      dtype: type of the numbers.
      count: how many to take; all by default.

    Raises:
      ValueError: if the iterator gives less than ``count``.
    """
    return asarray(np.fromiter(iter, dtype=_host_dtype(dtype), count=count))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """An array of the numbers in a text.

    Args:
      dtype: type of the numbers.
      count: how many to read; all by default.
      sep: what stands between them.

    >>> fromstring("1 2 3", sep=" ", dtype=int)
    Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=_host_dtype(dtype), count=count, sep=sep))


def _host_dtype(dtype: Any) -> Any:
    own = getattr(dtype, "dtype", None)
    return own if isinstance(own, np.dtype) else np.dtype(dtype)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """What ``numpy.save`` or :func:`save` wrote to a file: an array, or NumPy's archive of several.

    Args:
      file: an open file or a path.
      args, kwargs: as of ``numpy.load``.

    Raises:
      TypeError: if the file holds elements of one byte whose type it does not name.
    """
    found = np.load(file, *args, **kwargs)
    return asarray(_named(found)) if isinstance(found, np.ndarray) else found


def _named(value: np.ndarray) -> np.ndarray:
    """Elements of a type that the file does not name: of two bytes there is only one."""
    if value.dtype.kind != "V":
        return value
    if value.dtype.itemsize == 2:
        return value.view(dtypes.bf16)
    raise TypeError(
        f"load: the file holds elements of {value.dtype.itemsize} byte(s) without their type, as "
        "NumPy writes narrow floats and integers. Save them as bytes (x.view('uint8')) and view "
        "them as their dtype after loading, or as float32."
    )


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's format ``.npy``.

    Args:
      file: an open file or a path; ``.npy`` is added to a path without it.
      allow_pickle: whether values that are no numbers may be pickled.
    """
    value = np.asarray(arr)
    if value.dtype.isbuiltin != 1 and value.dtype.names is None and value.dtype.kind != "S":
        # NumPy's format has no names for these types; it may write ones that it cannot read.
        value = value.view(np.dtype((np.void, value.dtype.itemsize)))
    np.save(file, value, allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to one file in NumPy's format ``.npz``.

    Args:
      file: an open file or a path; ``.npz`` is added to a path without it.
      args: arrays that are named ``arr_0``, ``arr_1`` ...
      kwds: arrays by name.
    """
    named = {name: np.asarray(x) for name, x in kwds.items()}
    np.savez(file, *[np.asarray(x) for x in args], allow_pickle=allow_pickle, **named)
