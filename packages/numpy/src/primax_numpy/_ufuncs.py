"""Functions of NumPy's kind that also reduce, accumulate and update: ``ufunc`` objects."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import dtypes, typeof

from . import _ufunc_methods as methods
from ._checks import check_arrays, one_axis, wanted_dtype
from ._creation import asarray
from ._vectorizing import vectorize

# The class


class ufunc:
    """A function of scalars that is applied to arrays element by element, with NumPy's methods.

    Args:
      func: the function, of ``nin`` scalars.
      nin, nout: numbers of operands and results.
      name: by default that of ``func``.
      nargs: how many operands the methods count with, by default ``nin``.
      identity: what changes nothing as first operand; reductions of nothing give it.
      call: what a call does instead of mapping ``func`` over the elements.
      reduce, accumulate, at, reduceat: what the methods do instead of calling ``func`` step by
        step; they take the methods' arguments.
    """

    def __init__(
        self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None,
        nargs: int | None = None, identity: Any = None, call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None, accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None, reduceat: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        if not callable(func):
            raise TypeError(f"ufunc: expected a function, got {type(func).__name__}")
        self.__name__: str = name or func.__name__
        self.__qualname__: str = self.__name__
        self.__doc__ = func.__doc__
        self._func = func
        self._call: Callable[..., Any] = call or vectorize(func)
        self._own = (reduce, accumulate, at, reduceat)
        self._nin = operator.index(nin)
        self._nout = operator.index(nout)
        self._nargs = self._nin if nargs is None else operator.index(nargs)
        self._identity = identity

    @property
    def nin(self) -> int:
        """Number of operands."""
        return self._nin

    @property
    def nout(self) -> int:
        """Number of results."""
        return self._nout

    @property
    def nargs(self) -> int:
        """Number of operands that the methods count with."""
        return self._nargs

    @property
    def identity(self) -> Any:
        """What changes nothing as first operand, or ``None``."""
        return self._identity

    def _key(self) -> tuple[Any, ...]:
        named = (self.__name__, self._nin, self._nout, self._nargs, self._identity)
        return (self._func, *named, self._own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        """The function of each two elements (or of each, or of each three), broadcast together.

        ``out`` and ``where`` are refused: arrays are not written to.
        """
        if out is not None:
            raise NotImplementedError(f"out argument of {self}")
        if where is not None:
            raise NotImplementedError(f"where argument of {self}: use jnp.where on the result")
        return self._call(*args)

    def _check(self, method: str, nin: int, out: Any = None) -> None:
        if self._nin != nin:
            kind = "binary" if nin == 2 else "unary or binary"
            raise ValueError(f"{method} only supported for {kind} ufuncs, got {self}")
        if self._nout != 1:
            raise ValueError(f"{method} only supported for functions with one result, got {self}")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.{method}()")

    def reduce(
        self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False,
        initial: Any = None, where: Any = None,
    ) -> Any:  # fmt: skip
        """The elements along an axis, combined from first to last.

        Args:
          axis: one axis, or ``None`` for all; several for functions that are associative.
          dtype: dtype that the elements are converted to before.
          keepdims: keep the axis with size 1.
          initial: what the first element is combined with, as first operand.
          where: mask of the elements that take part; functions without identity need ``initial``.

        >>> import primax_numpy as jnp
        >>> jnp.add.reduce(jnp.arange(6).reshape(2, 3), axis=1).tolist()
        [3, 12]
        """
        self._check("reduce", 2, out)
        check_arrays(f"{self.__name__}.reduce", a)
        if where is not None and self._identity is None and initial is None:
            raise ValueError(
                f"reduction operation {self.__name__!r} does not have an identity, so to use a "
                "where mask one has to specify 'initial'."
            )
        own = self._own[0]
        ndim = typeof(a).ndim
        if own is not None:
            for i in axis if isinstance(axis, tuple) else () if axis is None else (axis,):
                _axis(i, ndim)
            return own(a, axis, dtype, None, keepdims, initial, where)
        if isinstance(axis, tuple):
            raise NotImplementedError(
                f"{self.__name__}.reduce: a tuple of axes; reduce one axis at a time, or all"
            )
        wanted = wanted_dtype(dtype, f"{self.__name__}.reduce")
        place = None if axis is None else _axis(axis, ndim)
        return methods.reduced(self, asarray(a), place, wanted, bool(keepdims), initial, where)

    def accumulate(self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Any:
        """The results of reducing the elements up to each position along an axis.

        >>> import primax_numpy as jnp
        >>> jnp.multiply.accumulate(jnp.array([1, 2, 3, 4])).tolist()
        [1, 2, 6, 24]
        """
        self._check("accumulate", 2, out)
        check_arrays(f"{self.__name__}.accumulate", a)
        x = asarray(a)
        if not x.ndim:
            x = lax.reshape(x, (1,))
        own = self._own[1]
        if axis is None:
            if own is None or x.ndim == 0:
                raise ValueError(
                    f"{self.__name__}.accumulate does not allow multiple axes: give one axis"
                )
            x, axis = lax.reshape(x, (x.size,)), 0
        wanted = wanted_dtype(dtype, f"{self.__name__}.accumulate")
        place = _axis(axis, x.ndim)
        if own is not None:
            return own(x, place, wanted)
        return methods.accumulated(self, x, place, wanted)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """A copy of an array, changed by the function at indices; repeated ones count each time.

        Args:
          indices: what an array can be indexed with.
          b: the second operand, for functions of two.
          inplace: must be ``False``: arrays are not written to.

        >>> import primax_numpy as jnp
        >>> jnp.add.at(jnp.zeros(3, int), jnp.array([0, 0, 2]), 5, inplace=False).tolist()
        [10, 0, 5]
        """
        if inplace:
            raise NotImplementedError(
                "Because arrays are immutable, jnp.ufunc.at() cannot operate inplace like "
                "np.ufunc.at(). Instead, you can pass inplace=False and capture the result; e.g.\n"
                f">>> arr = jnp.{self.__name__}.at(arr, ind, val, inplace=False)"
            )
        if self._nin not in (1, 2):
            raise ValueError(f"at only supported for unary or binary ufuncs, got {self}")
        if (b is None) != (self._nin == 1):
            raise TypeError(
                f"{self.__name__}.at() takes {'no' if self._nin == 1 else 'a'} second operand"
            )
        check_arrays(f"{self.__name__}.at", a, *(() if b is None else (b,)))
        own = self._own[2]
        x = asarray(a)
        if own is not None:
            return own(x, indices, b)
        return methods.updated(self, x, indices, b)

    def outer(self, A: Any, B: Any, /) -> Any:
        """The function of every element of ``A`` with every element of ``B``.

        The result has the shape of ``A`` followed by that of ``B``.
        """
        self._check("outer", 2)
        check_arrays(f"{self.__name__}.outer", A, B)
        return methods.outer_of(A, B, fun=self)

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Any:
        """Reductions of stretches along an axis.

        Args:
          indices: ``int[k]``: where stretches begin. Each ends where the next begins, or holds one
            element if that is not further on; the last one ends with the axis.

        Raises:
          IndexError: if an index is not below the size of the axis; where they are traced, such
            indices give the last element.

        >>> import primax_numpy as jnp
        >>> jnp.add.reduceat(jnp.arange(5), jnp.array([0, 3, 1])).tolist()
        [3, 3, 10]
        """
        self._check("reduceat", 2, out)
        name = f"{self.__name__}.reduceat"
        check_arrays(name, a, indices)
        x, starts = asarray(a), asarray(indices)
        if starts.ndim != 1:
            raise ValueError(
                f"reduceat: indices must be one-dimensional, got indices.shape={starts.shape}"
            )
        if not dtypes.issubdtype(starts.dtype, np.integer):
            raise ValueError(f"reduceat: indices must have an integer type, got {starts.dtype}")
        place = _axis(axis, x.ndim)
        methods.check_starts(name, starts, x.shape[place])
        own = self._own[3]
        wanted = wanted_dtype(dtype, name)
        if own is not None:
            return own(x, starts, place, wanted)
        return methods.reduced_at(self, x, starts, place, wanted)


def _axis(axis: Any, ndim: int) -> int:
    if not ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension 0")
    return one_axis(axis, ndim)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A :class:`ufunc` of a function of scalars that can be traced.

    Args:
      nin, nout: numbers of operands and results.
      identity: what changes nothing as first operand.

    >>> import primax_numpy as jnp
    >>> weigh = frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    >>> weigh.accumulate(jnp.array([1, 1, 1])).tolist()
    [1, 3, 7]
    """
    return ufunc(func, nin, nout, identity=identity)
