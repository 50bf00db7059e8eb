"""Linear operators: products with a matrix that need not be stored."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

import primax_numpy as pnp
from primax_core import closure_convert, lax, linear_transpose, vmap
from primax_core.extend import dtypes, is_operand, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import is_complex

_Product = Callable[[Any], Any]


def is_matrix(a: Any) -> bool:
    """True for an array or a sparse array."""
    return is_operand(a) or (hasattr(type(a), "__matmul__") and hasattr(a, "todense"))


def frozen(product: _Product) -> _Product:
    """The function without derivatives with respect to the values that it closes over."""

    def constant(x: Any) -> Any:
        converted, closed_over = closure_convert(product, x)
        return converted(x, *lax.stop_gradient(closed_over))

    return constant


def exact_product(a: Any, x: Any) -> Any:
    """The product of a dense or sparse matrix with a vector or matrix, at full precision."""
    return pnp.matmul(a, x, precision=lax.Precision.HIGHEST) if is_operand(a) else a @ x


class LinearOperator:
    """A linear operator ``[m, n]``, defined by its product with a vector.

    Args:
      shape: the shape ``(m, n)``.
      matvec: the product with a vector ``[n]``.
      rmatvec: the product of the conjugate transpose with a vector ``[m]``. The default is derived
        from ``matvec`` by transposition: the function must be traceable and linear.
      matmat: the product with a matrix ``[n, k]``. The default is ``matvec`` mapped over columns.
      dtype: the dtype of the operator; that of ``matvec`` of zeros by default.
      rmatmat: the product of the conjugate transpose with a matrix ``[m, k]``.

    Raises:
      ValueError: if the shape does not consist of two sizes, or an operand does not match it.

    Operators are combined by ``+``, ``-``, ``*`` with a number, ``@`` with an operator, and ``**``;
    ``@`` with an array is its product. ``.H`` is the adjoint and ``.T`` the transpose. The
    functions may close over arrays; results of solvers have derivatives with respect to them.

    >>> import primax_numpy as pnp
    >>> shift = LinearOperator((3, 3), lambda v: pnp.roll(v, 1))
    >>> shift @ pnp.array([1.0, 2.0, 3.0]), shift.T @ pnp.array([1.0, 2.0, 3.0])
    (Array([3., 1., 2.], dtype=float32), Array([2., 3., 1.], dtype=float32))
    """

    # Arrays defer to the operators of this class.
    __array_ufunc__: Any = None
    __array_priority__ = 1000

    def __init__(
        self,
        shape: Sequence[int],
        matvec: _Product,
        rmatvec: _Product | None = None,
        matmat: _Product | None = None,
        dtype: Any = None,
        rmatmat: _Product | None = None,
    ):
        self.shape: tuple[int, ...] = tuple(map(operator.index, shape))
        if len(self.shape) != 2:
            raise ValueError(f"a LinearOperator has the shape (m, n), got shape={self.shape}")
        self._matvec, self._rmatvec = matvec, rmatvec
        self._matmat, self._rmatmat = matmat, rmatmat
        if dtype is None:
            dtype = typeof(pnp.asarray(matvec(pnp.zeros(self.shape[1])))).dtype
        self.dtype: np.dtype[Any] = np.dtype(dtypes.canonicalize_dtype(dtype))

    @property
    def ndim(self) -> int:
        """The number of dimensions, 2."""
        return 2

    def _checked(self, x: Any, ndim: int, axis: int, name: str) -> Any:
        x = pnp.asarray(x)
        if x.ndim != ndim or x.shape[0] != self.shape[axis]:
            kind = "vector" if ndim == 1 else "matrix"
            raise ValueError(
                f"{name} of a linear operator of shape {self.shape} needs a {kind} with "
                f"{self.shape[axis]} rows, got shape {x.shape}"
            )
        return x

    def matvec(self, x: Any) -> Any:
        """The product with a vector ``[n]``, or ``[n, 1]``."""
        if pnp.ndim(x) == 2 and pnp.shape(x)[1] == 1:
            return self.matmat(x)
        return pnp.asarray(self._matvec(self._checked(x, 1, 1, "matvec")))

    def rmatvec(self, x: Any) -> Any:
        """The product of the adjoint with a vector ``[m]``, or ``[m, 1]``."""
        if pnp.ndim(x) == 2 and pnp.shape(x)[1] == 1:
            return self.rmatmat(x)
        x = self._checked(x, 1, 0, "rmatvec")
        if self._rmatvec is not None:
            return pnp.asarray(self._rmatvec(x))
        if self._rmatmat is not None:
            return self._rmatmat(x[:, None])[:, 0]
        return self._transposed_product(x)

    def _transposed_product(self, x: Any) -> Any:
        """The product of the adjoint, by transposition of ``matvec``."""
        dtype = pnp.promote_types(self.dtype, x.dtype)
        like = pnp.zeros(self.shape[1], dtype)
        out = typeof(self._matvec(like)).dtype
        (product,) = linear_transpose(self._matvec, like)(pnp.conj(x).astype(out))
        return pnp.conj(product)

    def matmat(self, X: Any) -> Any:
        """The product with a matrix ``[n, k]``."""
        X = self._checked(X, 2, 1, "matmat")
        if self._matmat is not None:
            return pnp.asarray(self._matmat(X))
        return vmap(self._matvec, 1, 1)(X)

    def rmatmat(self, X: Any) -> Any:
        """The product of the adjoint with a matrix ``[m, k]``."""
        X = self._checked(X, 2, 0, "rmatmat")
        if self._rmatmat is not None:
            return pnp.asarray(self._rmatmat(X))
        return vmap(self.rmatvec, 1, 1)(X)

    def dot(self, x: Any) -> Any:
        """The product with a vector, a matrix, a number, or another operator."""
        if isinstance(x, LinearOperator):
            return _composed(self, x)
        ndim = pnp.ndim(x)
        if ndim == 0:
            return _scaled(self, x)
        return self.matvec(x) if ndim == 1 else self.matmat(x)

    def adjoint(self) -> LinearOperator:
        """The conjugate transpose."""
        return LinearOperator(
            self.shape[::-1], self.rmatvec, self.matvec, self.rmatmat, self.dtype, self.matmat
        )

    def transpose(self) -> LinearOperator:
        """The transpose."""

        def conjugated(product: _Product) -> _Product:
            return lambda x: pnp.conj(product(pnp.conj(x)))

        parts = self.rmatvec, self.matvec, self.rmatmat, self.matmat
        right, left, right_all, left_all = map(conjugated, parts)
        return LinearOperator(self.shape[::-1], right, left, right_all, self.dtype, left_all)

    H = property(adjoint)
    T = property(transpose)

    def __repr__(self) -> str:
        return f"LinearOperator({self.dtype.name}{list(self.shape)})"

    def __call__(self, x: Any) -> Any:
        return self.dot(x)

    def __matmul__(self, x: Any) -> Any:
        if pnp.ndim(x) == 0 and not isinstance(x, LinearOperator):
            raise ValueError("a number multiplies a linear operator by *, not @")
        return self.dot(x)

    def __mul__(self, x: Any) -> Any:
        return self.dot(x)

    def __rmul__(self, x: Any) -> Any:
        return _scaled(self, x) if pnp.ndim(x) == 0 else NotImplemented

    def __neg__(self) -> LinearOperator:
        return _scaled(self, -1)

    def __add__(self, other: Any) -> Any:
        return _sum(self, other) if isinstance(other, LinearOperator) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return _sum(self, -other) if isinstance(other, LinearOperator) else NotImplemented

    def __pow__(self, exponent: int) -> LinearOperator:
        exponent = operator.index(exponent)
        if exponent < 0 or self.shape[0] != self.shape[1]:
            raise ValueError(
                f"the power {exponent} of a linear operator of shape {self.shape}: powers are "
                "those of square operators, and not negative"
            )
        identity = LinearOperator(self.shape, lambda x: x, lambda x: x, dtype=self.dtype)
        out = identity
        for _ in range(exponent):
            out = _composed(self, out)
        return out


def _composed(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"operators of shapes {a.shape} and {b.shape} cannot be multiplied")
    return LinearOperator(
        (a.shape[0], b.shape[1]),
        lambda x: a.matvec(b.matvec(x)),
        lambda x: b.rmatvec(a.rmatvec(x)),
        lambda x: a.matmat(b.matmat(x)),
        pnp.promote_types(a.dtype, b.dtype),
        lambda x: b.rmatmat(a.rmatmat(x)),
    )


def _sum(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    if a.shape != b.shape:
        raise ValueError(f"operators of shapes {a.shape} and {b.shape} cannot be added")
    return LinearOperator(
        a.shape,
        lambda x: a.matvec(x) + b.matvec(x),
        lambda x: a.rmatvec(x) + b.rmatvec(x),
        lambda x: a.matmat(x) + b.matmat(x),
        pnp.promote_types(a.dtype, b.dtype),
        lambda x: a.rmatmat(x) + b.rmatmat(x),
    )


def _scaled(a: LinearOperator, scale: Any) -> LinearOperator:
    factor = pnp.asarray(scale)
    if is_complex(factor):
        dtype = pnp.promote_types(a.dtype, factor.dtype)
    else:
        dtype = a.dtype
        factor = factor.astype(dtype)
    times = lambda s, product: lambda x: s * product(x)
    back = pnp.conj(factor)
    return LinearOperator(
        a.shape, times(factor, a.matvec), times(back, a.rmatvec), times(factor, a.matmat), dtype,
        times(back, a.rmatmat),
    )  # fmt: skip


class SparseLike(Protocol):
    """A sparse matrix: a :class:`BCOO` or another class with these members."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""

    @property
    def dtype(self) -> Any:
        """Type of the elements."""

    def todense(self) -> Any:
        """The dense array."""

    def __matmul__(self, other: Any, /) -> Any:
        """The product with an array."""


OperatorLike: TypeAlias = ArrayLike | SparseLike | LinearOperator
"""A matrix, dense or sparse, or an operator."""


def aslinearoperator(A: OperatorLike) -> LinearOperator:
    """The :class:`LinearOperator` of a dense or sparse matrix; an operator is returned unchanged.

    Raises:
      TypeError: if the argument is not a matrix or operator. A function needs a shape: use
        :class:`LinearOperator`.
      ValueError: if an array does not have two dimensions.
    """
    if isinstance(A, LinearOperator):
        return A
    if not is_matrix(A):
        raise TypeError(
            f"expected a matrix, a sparse matrix or a LinearOperator, got {type(A).__name__}; a "
            "function is converted by LinearOperator(shape, function)"
        )
    if is_operand(A):
        A = pnp.asarray(A)
    if len(A.shape) != 2:
        raise ValueError(f"a linear operator is a matrix, got an array of shape {A.shape}")
    A = A if dtypes.issubdtype(A.dtype, np.inexact) else A.astype(pnp.zeros(()).dtype)
    transposed = A.T

    def product(matrix: Any) -> _Product:
        def multiply(x: Any) -> Any:
            dtype = pnp.promote_types(matrix.dtype, x.dtype)
            return exact_product(matrix.astype(dtype), x.astype(dtype))

        return multiply

    def adjoint(x: Any) -> Any:
        if not dtypes.issubdtype(A.dtype, np.complexfloating):
            return product(transposed)(x)
        return pnp.conj(product(transposed)(pnp.conj(x)))

    forward = product(A)
    return LinearOperator(A.shape, forward, adjoint, forward, A.dtype, adjoint)


def square_operator(name: str, A: Any) -> LinearOperator:
    """The operator of a square matrix.

    Raises:
      ValueError: if it is not square.
    """
    A = aslinearoperator(A)
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} needs a square matrix, got shape {A.shape}")
    return A
