"""Signs and magnitudes; real and imaginary parts of complex numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, jvp, transpose
from .._ir.samples import Sample, c64, f32, samples
from .._lower.lazy import hlo
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.zeros import Zero, instantiate, is_linear
from .arithmetic import div, mul, neg
from .comparison import compare, eq, ge
from .complex_cases import abs_cases
from .conversion import convert
from .elementwise import (
    elementwise,
    elementwise_batching,
    elementwise_lowering,
    elementwise_samples,
    fast_path,
    filled,
    full_like,
    joint_shape,
    linear,
    same_dtypes,
    scalar_like,
    sum_to,
    unary,
    weak,
)
from .selection import select

_COMPLEX_OF: Final = {dtypes.f32: dtypes.c64, dtypes.f64: dtypes.c128}
_PART_OF: Final = {c: f for f, c in _COMPLEX_OF.items()}


def _part_of(dtype: Any) -> Any:
    return _PART_OF.get(dtype, dtype)


def _is_complex(x: Any) -> bool:
    return dtypes.issubdtype(typeof(x).dtype, np.complexfloating)


# Parts

real_p: Final = unary("real", ("complex",), lambda ctx, x: hlo.real(x), _part_of)
imag_p: Final = unary("imag", ("complex",), lambda ctx, x: hlo.imag(x), _part_of)


@fast_path(real_p)
def real(x: ArrayLike) -> Array:
    """Real part of each element of a complex array.

    Args:
      x: an array or a number of complex dtype.

    Returns:
      An array of the shape of ``x``: ``float32`` for ``complex64``, ``float64`` for
      ``complex128``.

    Raises:
      TypeError: if ``x`` does not have a complex dtype.

    The function is linear over the reals: the cotangent becomes the real part of a complex
    number. Under ``vmap`` the batch is one operand.

    >>> x = np.array([1 + 2j, 3 - 4j], np.complex64)
    >>> real(x).tolist()
    [1.0, 3.0]
    >>> real(x).dtype.name
    'float32'
    """
    return real_p.bind(x)


@fast_path(imag_p)
def imag(x: ArrayLike) -> Array:
    """Imaginary part of each element of a complex array.

    Args:
      x: an array or a number of complex dtype.

    Returns:
      An array of the shape of ``x``: ``float32`` for ``complex64``, ``float64`` for
      ``complex128``.

    Raises:
      TypeError: if ``x`` does not have a complex dtype.

    The function is linear over the reals: the cotangent becomes the imaginary part of a complex
    number, with its sign changed. Under ``vmap`` the batch is one operand.

    >>> x = np.array([1 + 2j, 3 - 4j], np.complex64)
    >>> imag(x).tolist()
    [2.0, -4.0]
    >>> imag(x).dtype.name
    'float32'
    """
    return imag_p.bind(x)


complex_p: Final = Primitive("complex")


@fast_path(complex_p)
def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Complex numbers from their real and imaginary parts.

    Args:
      x: the real parts, an array or a number of dtype ``float32`` or ``float64``.
      y: the imaginary parts, of the dtype of ``x``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape, of dtype ``complex64`` or ``complex128``.

    Raises:
      TypeError: if the dtypes differ or are narrower than 32 bits, or the shapes are
        incompatible.

    The function is linear in both operands. Under ``vmap`` the batch is one operand.

    >>> complex(np.float32(1), np.float32(2)).item()
    (1+2j)
    >>> complex(np.ones((2, 3), np.float32), 0.0).dtype.name
    'complex64'
    """
    return complex_p.bind(x, y)


@complex_p.rule(abstract)
def _complex_abstract(x, y):
    for i, a in enumerate((x, y)):
        _check_part("complex", a.dtype, f" at position {i}")
    same_dtypes("complex", (x, y))
    return ShapedArray(joint_shape("complex", (x, y)), _COMPLEX_OF[x.dtype], weak((x, y)))


def _check_part(name: str, dtype: Any, where: str = "", more: str = "") -> None:
    if dtype not in _COMPLEX_OF:
        raise TypeError(
            f"{name} does not accept dtype {dtype.name}{where}. Accepted dtypes{where} are "
            f"subtypes of float32, float64{more}."
        )


elementwise_lowering(complex_p, lambda ctx, x, y: hlo.complex(x, y))
elementwise_batching(complex_p)


@complex_p.rule(jvp)
def _complex_jvp(primals, tangents):
    out = complex_p.bind(*primals)
    if all(type(t) is Zero for t in tangents):
        return out, Zero.like(out)
    parts = [
        scalar_like(p, 0) if type(t) is Zero and typeof(p).shape == () else instantiate(t)
        for p, t in zip(primals, tangents)
    ]
    return out, complex_p.bind(*parts)


@complex_p.rule(transpose)
def _complex_transpose(ct, x, y):
    return [
        sum_to(real(ct), x.aval) if is_linear(x) else None,
        sum_to(imag(neg(ct)), y.aval) if is_linear(y) else None,
    ]


linear(real_p, lambda ct, aval: complex(ct, scalar_like(ct, 0)))
linear(imag_p, lambda ct, aval: complex(scalar_like(ct, 0), neg(ct)))

conj_p: Final = Primitive("conj")


def conj(x: ArrayLike) -> Array:
    """Complex conjugate of each element.

    Floats are converted to complex numbers, so that the result always has a complex dtype.

    Args:
      x: an array or a number of dtype ``float32``, ``float64`` or a complex dtype.

    Returns:
      An array of the shape of ``x``, of the complex dtype of its precision.

    Raises:
      TypeError: if ``x`` has another dtype, or is not an array or a number.

    The function is linear over the reals; a cotangent is conjugated too. Under ``vmap`` the batch
    is one operand.

    >>> conj(np.array([1 + 2j, 3 - 4j], np.complex64)).tolist()
    [(1-2j), (3+4j)]
    >>> conj(np.float32(1)).item()
    (1+0j)
    """
    return conj_p.bind(x, input_dtype=typeof(x).dtype)


@conj_p.rule(abstract)
def _conj_abstract(x, *, input_dtype):
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return x
    _check_part("conj", x.dtype, more=", complexfloating")
    return x.update(dtype=_COMPLEX_OF[x.dtype])


def _emit_conj(ctx, x, *, input_dtype):
    if dtypes.issubdtype(ctx.in_avals[0].dtype, np.complexfloating):
        return hlo.complex(hlo.real(x), hlo.negate(hlo.imag(x)))
    return hlo.complex(x, filled(ctx, 0))


elementwise_lowering(conj_p, _emit_conj)
elementwise_batching(conj_p)
linear(
    conj_p,
    lambda ct, aval, *, input_dtype: (
        conj(ct) if dtypes.issubdtype(input_dtype, np.complexfloating) else real(ct)
    ),
)

# Magnitude

abs_p: Final = unary(
    "abs", ("float", "complex", "signed"), abs_cases(lambda ctx, x: hlo.abs(x)), _part_of
)


@fast_path(abs_p)
def abs(x: ArrayLike) -> Array:
    """Absolute value of each element.

    The smallest signed integer is returned unchanged. The magnitudes of complex numbers are
    computed without overflow.

    Args:
      x: an array or a number of signed integer, floating or complex dtype.

    Returns:
      An array of the shape of ``x``, of its dtype; of the dtype of its parts for complex numbers.

    Raises:
      TypeError: if ``x`` is boolean, or not an array or a number.

    The derivative is the sign of the element: 1 at 0 and -0. For complex numbers it is ``conj(x)
    / abs(x)``, and 0 at 0. Under ``vmap`` the batch is one operand.

    >>> abs(np.array([-2, 0, 3])).tolist()
    [2, 0, 3]
    >>> abs(np.complex64(3 + 4j)).item()
    5.0
    """
    return abs_p.bind(x)


@abs_p.rule(jvp)
def _abs_jvp(primals, tangents):
    (x,), (g,) = primals, tangents
    out = abs(x)
    if type(g) is Zero:
        return out, Zero.like(out)
    if not _is_complex(x):
        return out, select(ge(x, scalar_like(x, 0)), g, neg(g))
    size = _nonzero(convert(out, typeof(x).dtype, typeof(out).weak_type))
    return out, real(mul(g, div(conj(x), size)))


def _nonzero(x: Any) -> Any:
    """The elements, with zeros replaced by ones."""
    return select(eq(x, scalar_like(x, 0)), full_like(x, 1), x)


# Sign

sign_p: Final = Primitive("sign")


@fast_path(sign_p)
def sign(x: ArrayLike) -> Array:
    """Sign of each element: -1, 0 or 1.

    -0.0 and NaN are returned unchanged. A complex number gives ``x / abs(x)``, and 0 gives 0.

    Args:
      x: an array or a number of integer, floating or complex dtype.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` is boolean, or not an array or a number.

    The derivative of real elements is 0; complex elements have the derivative of ``x / abs(x)``.
    Under ``vmap`` the batch is one operand.

    >>> sign(np.array([-2, 0, 3])).tolist()
    [-1, 0, 1]
    >>> sign(np.complex64(2j)).item()
    1j
    """
    return sign_p.bind(x)


def _emit_sign(ctx, x):
    dtype = ctx.in_avals[0].dtype
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        return hlo.sign(x)
    zero = filled(ctx, 0)
    return hlo.select(compare("EQ", x, zero, dtype), zero, filled(ctx, 1))


elementwise(sign_p, _emit_sign, ("number",))


@sign_p.rule(jvp)
def _sign_jvp(primals, tangents):
    (x,), (g,) = primals, tangents
    out = sign(x)
    if type(g) is Zero or not _is_complex(x):
        return out, Zero.like(out)
    turn = div(imag(mul(conj(out), g)), _nonzero(abs(x)))
    return out, mul(out, complex(scalar_like(turn, 0), turn))


for _prim in (real_p, imag_p):
    elementwise_samples(_prim, "c")
elementwise_samples(abs_p, "fci", low=0.1)
elementwise_samples(sign_p, "fciu", low=0.1)


@complex_p.rule(samples)
def _complex_samples():
    yield Sample(f32(3), f32(3))
    yield Sample(f32(), f32())
    yield Sample(f32(0, 2), f32(0, 2))


@conj_p.rule(samples)
def _conj_samples():
    yield Sample(c64(3, 2), input_dtype=np.dtype(np.complex64))
    yield Sample(f32(3), input_dtype=np.dtype(np.float32))
