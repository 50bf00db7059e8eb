"""Array printing and its options."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np


def array_repr(
    arr: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """``repr(arr)`` with other print options.

    Args:
      max_line_width: the line width in characters.
      precision: the number of decimals.
      suppress_small: print very small numbers as 0.
    """
    with _options(max_line_width, precision, suppress_small):
        return repr(arr)


def array_str(
    a: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """``str(a)`` with other print options; arguments as for :func:`array_repr`."""
    with _options(max_line_width, precision, suppress_small):
        return str(a)


def _options(width: Any, precision: Any, suppress: Any) -> AbstractContextManager[Any]:
    options = {"linewidth": width, "precision": precision, "suppress": suppress}
    return np.printoptions(**{k: v for k, v in options.items() if v is not None})


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[dict[str, Any]]:
    """Context manager that changes print options, which are those of ``numpy.printoptions``.

    >>> with printoptions(precision=2):
    ...     print(np.array([1.2345]))
    [1.23]
    """
    context: AbstractContextManager[dict[str, Any]] = np.printoptions(*args, **kwargs)
    return context


def get_printoptions() -> dict[str, Any]:
    """The current print options, which are NumPy's."""
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Change the print options, which are those of ``numpy.set_printoptions``."""
    np.set_printoptions(*args, **kwargs)
