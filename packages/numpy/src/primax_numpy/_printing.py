"""Array printing and its options."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from primax_core.typing import ArrayLike


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """``repr(arr)`` with other print options.

    Args:
      arr: an array.
      max_line_width: the line width in characters.
      precision: the number of decimals.
      suppress_small: print very small numbers as 0.

    Returns:
      A string, with the class and the dtype.

    Options that are ``None`` have the current value, see :func:`get_printoptions`.

    >>> import primax_numpy as jnp
    >>> array_repr(jnp.array([1.2345, 2.0]), precision=2)
    'Array([1.23, 2.  ], dtype=float32)'
    """
    with _options(max_line_width, precision, suppress_small):
        return repr(arr)


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """``str(a)`` with other print options.

    Args:
      a: an array.
      max_line_width: the line width in characters.
      precision: the number of decimals.
      suppress_small: print very small numbers as 0.

    Returns:
      A string, with the elements only.

    Options that are ``None`` have the current value, see :func:`get_printoptions`.

    >>> import primax_numpy as jnp
    >>> array_str(jnp.array([1.2345, 2.0]), precision=2)
    '[1.23 2.  ]'
    """
    with _options(max_line_width, precision, suppress_small):
        return str(a)


def _options(width: Any, precision: Any, suppress: Any) -> AbstractContextManager[Any]:
    options = {"linewidth": width, "precision": precision, "suppress": suppress}
    return np.printoptions(**{k: v for k, v in options.items() if v is not None})


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[dict[str, Any]]:
    """Context manager that changes print options, which are those of ``numpy.printoptions``.

    Args:
      args, kwargs: options by name, such as ``precision`` (the number of decimals), ``suppress``,
        ``threshold`` and ``linewidth``.

    Returns:
      A context manager; its value is the dictionary of the changed options.

    The options apply to arrays of NumPy, too. They are restored at the end of the block.

    >>> with printoptions(precision=2):
    ...     print(np.array([1.2345]))
    [1.23]
    """
    context: AbstractContextManager[dict[str, Any]] = np.printoptions(*args, **kwargs)
    return context


def get_printoptions() -> dict[str, Any]:
    """The current print options, which are NumPy's.

    Returns:
      A new dictionary: changes of it have no effect.

    See :func:`set_printoptions` and :func:`printoptions` for changes.

    >>> with printoptions(precision=2):
    ...     get_printoptions()["precision"]
    2
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Change the print options, which are those of ``numpy.set_printoptions``.

    Args:
      args, kwargs: options by name, such as ``precision`` (the number of decimals), ``suppress``,
        ``threshold`` and ``linewidth``.

    The options apply to arrays of NumPy, too, until they are changed again. See
    :func:`printoptions` for a temporary change.

    >>> before = get_printoptions()
    >>> set_printoptions(precision=2)
    >>> print(np.array([1.2345]))
    [1.23]
    >>> set_printoptions(**before)
    """
    np.set_printoptions(*args, **kwargs)
