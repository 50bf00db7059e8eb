"""``ufunc`` objects: elementwise functions that also reduce, accumulate and update."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import dtypes
from primax_core.extend.elementwise import argument_type as typeof

from . import _ufunc_methods as methods
from ._checks import check_arrays, dtype_argument, one_axis
from ._creation import asarray
from ._vectorizing import vectorize

# The class


class ufunc:
    """An elementwise function of scalars with NumPy's ufunc methods.

    Args:
      func: the function, of ``nin`` scalars.
      nin, nout: numbers of operands and results.
      name: the name, by default that of ``func``.
      nargs: the value of the attribute ``nargs``, by default ``nin``.
      identity: the left identity, which is the result of empty reductions.
      call: implementation of a call that replaces mapping ``func`` over the elements.
      reduce, accumulate, at, reduceat: implementations of the methods that replace calling
        ``func`` step by step, with the arguments of the methods.
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
        """The number of operands, or the value passed to the constructor."""
        return self._nargs

    @property
    def identity(self) -> Any:
        """The left identity, or ``None``."""
        return self._identity

    def _key(self) -> tuple[Any, ...]:
        named = (self.__name__, self._nin, self._nout, self._nargs, self._identity)
        return (self._func, *named, self._own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        """Apply the function elementwise to operands, which are broadcast together.

        ``out`` and ``where`` raise an error: arrays are immutable.
        """
        if out is not None:
            raise NotImplementedError(f"out argument of {self}")
        if where is not None:
            raise NotImplementedError(
                f"where argument of {self}: use primax.numpy.where on the result"
            )
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
        """Reduction of the elements along an axis, from first to last.

        Args:
          axis: one axis, or ``None`` for all; a tuple for functions with their own ``reduce``.
          dtype: the dtype to convert the elements to first.
          keepdims: keep the axis with size 1.
          initial: the initial value of the reduction.
          where: a mask of the reduced elements; functions without identity need ``initial``.

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
        requested = dtype_argument(dtype, f"{self.__name__}.reduce")
        place = None if axis is None else _axis(axis, ndim)
        return methods.reduced(self, asarray(a), place, requested, bool(keepdims), initial, where)

    def accumulate(self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Any:
        """Reductions of the elements up to each position along an axis.

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
                    f"{self.__name__}.accumulate does not allow multiple axes: pass one axis"
                )
            x, axis = lax.reshape(x, (x.size,)), 0
        requested = dtype_argument(dtype, f"{self.__name__}.accumulate")
        place = _axis(axis, x.ndim)
        if own is not None:
            return own(x, place, requested)
        return methods.accumulated(self, x, place, requested)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """A copy of an array updated by the function at indices; repeated indices apply it
        repeatedly.

        Args:
          indices: any index expression.
          b: the second operand, for binary functions.
          inplace: must be ``False``: arrays are immutable.

        >>> import primax_numpy as jnp
        >>> jnp.add.at(jnp.zeros(3, int), jnp.array([0, 0, 2]), 5, inplace=False).tolist()
        [10, 0, 5]
        """
        if inplace:
            raise NotImplementedError(
                "Because arrays are immutable, ufunc.at() cannot operate inplace like "
                "np.ufunc.at(). Instead, you can pass inplace=False and capture the result; e.g.\n"
                f">>> arr = {self.__name__}.at(arr, ind, val, inplace=False)"
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
        """The function applied to every pair of elements of ``A`` and ``B``.

        The result has the shape of ``A`` followed by that of ``B``.
        """
        self._check("outer", 2)
        check_arrays(f"{self.__name__}.outer", A, B)
        return methods.outer_of(A, B, fun=self)

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Any:
        """Reductions of segments along an axis.

        Args:
          indices: ``int[k]``: starts of segments. Each ends at the next start, or contains one
            element if the next start is not larger; the last one ends with the axis.

        Raises:
          IndexError: if a concrete index is out of bounds; traced indices are clamped.

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
        requested = dtype_argument(dtype, name)
        if own is not None:
            return own(x, starts, place, requested)
        return methods.reduced_at(self, x, starts, place, requested)


def _axis(axis: Any, ndim: int) -> int:
    if not ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension 0")
    return one_axis(axis, ndim)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A :class:`ufunc` of a traceable function of scalars.

    Args:
      func: a function of ``nin`` scalars that returns ``nout`` scalars; it is mapped over the
        operands.
      nin, nout: numbers of operands and results.
      identity: the left identity, the result of empty reductions.

    Returns:
      A :class:`ufunc`, whose operands are broadcast together.

    >>> import primax_numpy as jnp
    >>> weigh = frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    >>> weigh.accumulate(jnp.array([1, 1, 1])).tolist()
    [1, 3, 7]
    """
    return ufunc(func, nin, nout, identity=identity)
