"""Arrays from files, buffers, strings, iterators and other libraries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import IO, Any

import numpy as np

from primax_core import dlpack
from primax_core.extend import Array, dtypes
from primax_core.typing import ArrayLike, DTypeLike, PlacementLike

from ._creation import asarray


def from_dlpack(
    x: Any, /, *, device: PlacementLike | None = None, copy: bool | None = None
) -> Array:
    """An array with the values of another library's array.

    Args:
      x: an object with the methods ``__dlpack__`` and ``__dlpack_device__``.
      device: the device of the result; by default that of the values.
      copy: ``True`` always copies, ``False`` never does; by default memory is shared if possible.

    Returns:
      An array of the shape and dtype of ``x``.

    See ``primax.dlpack.from_dlpack`` for the details.

    >>> from_dlpack(np.array([1, 2], np.int32))
    Array([1, 2], dtype=int32)
    """
    return dlpack.from_dlpack(x, device=device, copy=copy)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """An array of the numbers stored in a buffer.

    Args:
      buffer: bytes, or another object that implements the buffer protocol.
      dtype: type of the numbers in the buffer; ``float`` is 64 bits there.
      count: the number of elements to read; all by default.
      offset: the number of bytes to skip first.

    Returns:
      A vector; 64-bit numbers are converted to 32 bits unless they are enabled.

    Raises:
      ValueError: if the buffer has fewer bytes, or not a multiple of the itemsize.

    >>> frombuffer(np.array([1.0, 2.0], np.float32).tobytes(), np.float32).tolist()
    [1.0, 2.0]
    """
    return asarray(np.frombuffer(buffer, dtype=_host_dtype(dtype), count=count, offset=offset))


def fromfile(
    file: str | os.PathLike[str] | IO[bytes],
    dtype: DTypeLike = float,
    count: int = -1,
    sep: str = "",
    offset: int = 0,
) -> Array:
    """An array of the numbers in a file. The file is read when the function is called (traced).

    Args:
      file: an open file or a path.
      dtype: type of the numbers in the file; ``float`` is 64 bits there.
      count: the number of elements to read; all by default.
      sep: the separator of numbers in a text file; ``""`` for binary files.
      offset: the number of bytes to skip first, in binary files.

    Returns:
      A vector; 64-bit numbers are converted to 32 bits unless they are enabled.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     np.array([1, 2], np.int32).tofile(file)
    ...     _ = file.seek(0)
    ...     fromfile(file, np.int32).tolist()
    [1, 2]
    """
    dtype = _host_dtype(dtype)
    return asarray(np.fromfile(file, dtype=dtype, count=count, sep=sep, offset=offset))


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """An array of the numbers that an iterator yields.

    Args:
      iter: an iterable of numbers. It runs when the function is called (traced).
      dtype: type of the numbers.
      count: the number of elements to take; all by default.

    Returns:
      A vector of dtype ``dtype``.

    Raises:
      ValueError: if the iterator yields fewer than ``count`` elements.

    >>> fromiter((i * i for i in range(4)), int).tolist()
    [0, 1, 4, 9]
    """
    return asarray(np.fromiter(iter, dtype=_host_dtype(dtype), count=count))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array of the numbers in a string.

    Args:
      string: numbers in text.
      dtype: type of the numbers, the default float by default.
      count: the number of elements to read; all by default.
      sep: the separator of the numbers.

    Returns:
      A vector of dtype ``dtype``.

    >>> fromstring("1 2 3", sep=" ", dtype=int)
    Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=_host_dtype(dtype), count=count, sep=sep))


def _host_dtype(dtype: Any) -> Any:
    own = getattr(dtype, "dtype", None)
    return own if isinstance(own, np.dtype) else np.dtype(dtype)


def load(file: str | os.PathLike[str] | IO[bytes], *args: Any, **kwargs: Any) -> Any:
    """Load the array or the archive of several arrays that :func:`save` or :func:`savez` wrote.

    Args:
      file: an open file or a path, also of files that NumPy wrote.
      args, kwargs: further arguments of ``numpy.load``.

    Returns:
      An array, or NumPy's archive, which contains arrays by name.

    Raises:
      TypeError: if the file contains one-byte elements without their dtype.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, np.array([1, 2], np.int32))
    >>> _ = file.seek(0)
    >>> load(file)
    Array([1, 2], dtype=int32)
    """
    loaded = np.load(file, *args, **kwargs)
    return asarray(_named(loaded)) if isinstance(loaded, np.ndarray) else loaded


def _named(value: np.ndarray) -> np.ndarray:
    """Restore the dtype of elements saved as raw bytes: those of two bytes are ``bfloat16``."""
    if value.dtype.kind != "V":
        return value
    if value.dtype.itemsize == 2:
        return value.view(dtypes.bf16)
    raise TypeError(
        f"load: the file holds elements of {value.dtype.itemsize} byte(s) without their type, as "
        "NumPy writes narrow floats and integers. Save them as bytes (x.view('uint8')) and view "
        "them as their dtype after loading, or as float32."
    )


def save(
    file: str | os.PathLike[str] | IO[bytes],
    arr: ArrayLike | Sequence[Any],
    allow_pickle: bool = True,
) -> None:
    """Write an array to a file in NumPy's format ``.npy``.

    Args:
      file: an open file or a path; ``.npy`` is added to a path without it.
      arr: an array, which must be concrete.
      allow_pickle: allow pickling of values that are not numbers.

    The inverse is :func:`load`.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, np.array([1, 2], np.int32))
    >>> _ = file.seek(0)
    >>> load(file)
    Array([1, 2], dtype=int32)
    """
    value = np.asarray(arr)
    if value.dtype.isbuiltin != 1 and value.dtype.names is None and value.dtype.kind != "S":
        # NumPy's format cannot name these dtypes; it may write names that it cannot read.
        value = value.view(np.dtype((np.void, value.dtype.itemsize)))
    np.save(file, value, allow_pickle=allow_pickle)


def savez(
    file: str | os.PathLike[str] | IO[bytes], *args: Any, allow_pickle: bool = True, **kwds: Any
) -> None:
    """Write several arrays to one file in NumPy's format ``.npz``.

    Args:
      file: an open file or a path; ``.npz`` is added to a path without it.
      args: arrays stored as ``arr_0``, ``arr_1``, ...
      allow_pickle: allow pickling of values that are not numbers.
      kwds: arrays stored by name.

    The inverse is :func:`load`.

    >>> import io
    >>> file = io.BytesIO()
    >>> savez(file, weights=np.array([1, 2], np.int32))
    >>> _ = file.seek(0)
    >>> load(file)["weights"].tolist()
    [1, 2]
    """
    named = {name: np.asarray(x) for name, x in kwds.items()}
    np.savez(file, *[np.asarray(x) for x in args], allow_pickle=allow_pickle, **named)
