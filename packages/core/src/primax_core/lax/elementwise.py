"""Shared rules of elementwise and linear primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

import numpy as np

from .._base import caches
from .._base.config import state
from .._base.source import api_boundary, fold_traceback
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.element_types import DTypeLike
from .._ir.jaxpr import Literal
from .._ir.primitive import Primitive, abstract, batch, calling_module, jvp, lower, transpose
from .._ir.samples import Sample, b1, bf16, c64, f32, i32, samples, u8
from .._lower.lazy import shaped
from .._runtime.dispatch import Executable
from .._runtime.launch import launch
from .._trace.core import typeof
from .._trace.structural import broadcast_in_dim, literal, sum_axes
from .._trace.typing import ArrayLike
from .._transform.batching import move_axis
from .._transform.zeros import Zero, add_tangents, is_linear

_F = TypeVar("_F", bound=Callable[..., Any])

# Types

_KINDS: Final[dict[str, type]] = {
    "float": np.floating,
    "complex": np.complexfloating,
    "integer": np.integer,
    "signed": np.signedinteger,
    "bool": np.bool_,
    "inexact": np.inexact,
    "number": np.number,
}
_SHOWN: Final = {
    "float": "floating",
    "complex": "complexfloating",
    "signed": "signedinteger",
    "inexact": "floating, complexfloating",
    "number": "integer, floating, complexfloating",
}


def accepts(dtype: DTypeLike, kinds: Sequence[str]) -> bool:
    """Return True if a dtype belongs to one of the given dtype classes (names in ``_KINDS``)."""
    return any(dtypes.issubdtype(dtype, _KINDS[k]) for k in kinds)


def check_dtypes(name: str, avals: Sequence[ShapedArray], kinds: Sequence[str]) -> None:
    """Check the dtypes of operands: their classes, and that they are the same.

    Args:
      name: the name of the primitive, for the error.
      avals: the types of the operands.
      kinds: accepted classes: ``float``, ``complex``, ``integer``, ``signed``, ``bool``,
        ``inexact``, ``number``.

    Returns:
      ``None``.

    Raises:
      TypeError: for operands of other dtype classes, or of different dtypes.

    Abstract rules call it.

    >>> from primax_core.extend import typeof
    >>> from primax_core.extend.elementwise import check_dtypes
    >>> check_dtypes("scale", [typeof(1.0), typeof(2.0)], ["inexact"])
    """
    for i, a in enumerate(avals):
        check_kind(name, a.dtype, kinds, i if len(avals) > 1 else None)
    same_dtypes(name, avals)


def check_kind(
    name: str, dtype: DTypeLike, kinds: Sequence[str], position: int | None = None
) -> None:
    """Raise TypeError if a dtype belongs to none of the given dtype classes."""
    if not accepts(dtype, kinds):
        at = "" if position is None else f" at position {position}"
        shown = ", ".join(_SHOWN.get(k, k) for k in kinds)
        raise TypeError(
            f"{name} does not accept dtype {dtype.name}{at}. Accepted dtypes{at} are subtypes of "
            f"{shown}."
        )


# Functions of the NumPy layer that compute the same as a primitive, with type promotion.
_PROMOTING: Final = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "remainder",
    "max": "maximum", "min": "minimum", "pow": "power", "atan2": "arctan2",
    "nextafter": "nextafter", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "shift_left": "left_shift", "shift_right_arithmetic": "right_shift",
    "shift_right_logical": "right_shift",
}  # fmt: skip


def same_dtypes(name: str, avals: Sequence[ShapedArray]) -> None:
    """Check that operands have the same dtype.

    Args:
      name: the name of the primitive, for the error.
      avals: the types of the operands, at least one.

    Returns:
      ``None``.

    Raises:
      TypeError: for operands of different dtypes.

    :func:`check_dtypes` also checks the class of the dtype.

    >>> from primax_core.extend import typeof
    >>> from primax_core.extend.elementwise import same_dtypes
    >>> same_dtypes("scale", [typeof(1.0), typeof(2.0)])
    """
    first = avals[0].dtype
    if any(a.dtype != first for a in avals):
        similar = _PROMOTING.get(name)
        tip = (
            f" (Tip: primax.numpy.{similar} is a similar function that does automatic type "
            "promotion on inputs)."
        )
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{', '.join(a.dtype.name for a in avals)}.{tip if similar else ''}"
        )


def joint_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The broadcast shape of elementwise operands.

    Scalars broadcast to any shape. Other operands have the same rank; axes of size 1 are
    broadcast.

    Args:
      name: the name of the primitive, for the error.
      avals: the types of the operands, at least one.

    Returns:
      A tuple of sizes.

    Raises:
      TypeError: if ranks or sizes are incompatible.

    >>> from primax_core.extend import typeof
    >>> from primax_core.extend.elementwise import joint_shape
    >>> joint_shape("scale", [typeof(np.zeros((2, 1))), typeof(np.zeros((1, 3))), typeof(1.0)])
    (2, 3)
    """
    first = avals[0].shape
    if all(a.shape == first for a in avals):
        return first
    shapes = [a.shape for a in avals if a.shape]
    if any(len(s) != len(shapes[0]) for s in shapes):
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes "
            f"{', '.join(str(s) for s in shapes)}. Only scalars (shape ()) go with any shape; add "
            "axes of size 1 to the array of lower rank."
        )
    joint = []
    for sizes in zip(*shapes):
        others = {d for d in sizes if d != 1}
        if len(others) > 1:
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: "
                f"{', '.join(str(a.shape) for a in avals)}."
            )
        joint.append(others.pop() if others else 1)
    return tuple(joint)


def weak(avals: Sequence[ShapedArray]) -> bool:
    """Return True if all operands are weakly typed; the result then is, too."""
    return all(a.weak_type for a in avals)


# Elementwise primitives


def elementwise(
    prim: Primitive,
    emit: Callable,
    kinds: Sequence[str],
    out_dtype: Callable[[Any], Any] | None = None,
) -> None:
    """Define the type, lowering and batching of an elementwise primitive.

    Args:
      prim: the primitive.
      emit: ``(ctx, *values, **params) -> value`` on operands of one shape.
      kinds: accepted dtype classes, see :func:`check_dtypes`.
      out_dtype: function from the operands' dtype to the result's; the same dtype by default.

    Returns:
      ``None``.

    Derivatives are defined by :func:`derivatives`, samples by :func:`elementwise_samples`.

    >>> from primax_core.extend import Primitive
    >>> from primax_core.extend.elementwise import elementwise
    >>> from primax_core.extend.lowering import hlo
    >>> acme_sum_p = Primitive("acme_sum")
    >>> elementwise(acme_sum_p, lambda ctx, x, y: hlo.add(x, y), ["float"])
    >>> acme_sum_p.bind(np.ones((2, 1), np.float32), 1.0).tolist()
    [[2.0], [2.0]]
    """

    @prim.rule(abstract)
    def _abstract(*avals, **_):
        check_dtypes(prim.name, avals, kinds)
        dtype = avals[0].dtype if out_dtype is None else out_dtype(avals[0].dtype)
        return ShapedArray(joint_shape(prim.name, avals), dtype, weak(avals))

    elementwise_lowering(prim, emit)
    elementwise_batching(prim)


def elementwise_lowering(prim: Primitive, emit: Callable) -> None:
    """Define the lowering of an elementwise primitive.

    Args:
      prim: the primitive.
      emit: ``(ctx, *values, **params) -> value`` on operands of one shape: the function need not
        broadcast.

    Returns:
      ``None``.

    It is a part of :func:`elementwise`, for primitives with an abstract rule of their own.

    >>> from primax_core.extend import Primitive, lower
    >>> from primax_core.extend.elementwise import elementwise_lowering
    >>> from primax_core.extend.lowering import hlo
    >>> acme_negative_p = Primitive("acme_negative")
    >>> elementwise_lowering(acme_negative_p, lambda ctx, x: hlo.negate(x))
    """

    @prim.rule(lower)
    def _lower(ctx, *values, **params):
        return emit(ctx, *same_shapes(ctx, values), **params)


def unary(
    name: str, kinds: Sequence[str], emit: Callable, out_dtype: Callable | None = None
) -> Primitive:
    """An elementwise primitive of one operand.

    Args:
      name: the name of the primitive.
      kinds: accepted dtype classes, see :func:`check_dtypes`.
      emit: ``(ctx, value, **params) -> value``, the lowering.
      out_dtype: function from the operand's dtype to the result's; the same dtype by default.

    Returns:
      A primitive with rules for its type, lowering and batching.

    Its home is the module of the caller. Derivatives are defined by :func:`derivatives`.

    >>> from primax_core.extend.elementwise import unary
    >>> from primax_core.extend.lowering import hlo
    >>> acme_floor_p = unary("acme_floor", ["float"], lambda ctx, x: hlo.floor(x))
    >>> float(acme_floor_p.bind(1.5))
    1.0
    """
    prim = Primitive(name, home=calling_module(2))
    elementwise(prim, emit, kinds, out_dtype)
    return prim


def binary(
    name: str, kinds: Sequence[str], emit: Callable, out_dtype: Callable | None = None
) -> Primitive:
    """An elementwise primitive of two operands.

    Args:
      name: the name of the primitive.
      kinds: accepted dtype classes, see :func:`check_dtypes`.
      emit: ``(x, y) -> value``, the lowering, on values of one shape.
      out_dtype: function from the operands' dtype to the result's; the same dtype by default.

    Returns:
      A primitive with rules for its type, lowering and batching.

    Its home is the module of the caller. Derivatives are defined by :func:`derivatives`.

    >>> from primax_core.extend.elementwise import binary
    >>> from primax_core.extend.lowering import hlo
    >>> acme_product_p = binary("acme_product", ["float"], lambda x, y: hlo.multiply(x, y))
    >>> float(acme_product_p.bind(1.5, 2.0))
    3.0
    """
    prim = Primitive(name, home=calling_module(2))
    elementwise(prim, lambda ctx, x, y: emit(x, y), kinds, out_dtype)
    return prim


def same_shapes(ctx: Any, values: Sequence[Any]) -> Sequence[Any]:
    """Operands broadcast to the shape of the result."""
    shape = ctx.out_avals[0].shape
    for a in ctx.in_avals:
        if a.shape != shape:
            break
    else:
        return values
    return [
        v if a.shape == shape else _repeated(ctx, v, a, shape) for v, a in zip(values, ctx.in_avals)
    ]


def _repeated(ctx, value: Any, aval: ShapedArray, shape: tuple[int, ...]) -> Any:
    """A value broadcast to a shape; one operation per block and shape."""
    result = ctx.broadcasts.get((value, shape))
    if result is None:
        result = shaped.broadcast_in_dim(value, shape, range(aval.ndim))
        ctx.broadcasts[value, shape] = result
    return result


def filled(ctx: Any, value: Any) -> Any:
    """A constant with the shape and dtype of the first operand, for lowering rules."""
    aval = ctx.in_avals[0]
    return shaped.full(np.asarray(value).astype(aval.dtype), ctx.out_avals[0].shape)


def elementwise_batching(prim: Primitive) -> None:
    """Define the batching of an elementwise primitive: align the mapped axes.

    Unbatched operands get an axis of size 1, which the primitive broadcasts.

    Args:
      prim: the primitive.

    Returns:
      ``None``.

    It is a part of :func:`elementwise`, for primitives with an abstract rule of their own.

    >>> from primax_core.extend import Primitive
    >>> from primax_core.extend.elementwise import elementwise_batching
    >>> acme_scale_p = Primitive("acme_scale")
    >>> elementwise_batching(acme_scale_p)
    """

    @prim.rule(batch)
    def _batch(axis, args, dims, **params):
        ranks = [typeof(a).ndim - (d is not None) for a, d in zip(args, dims)]
        rank = max(ranks)
        places = {d for d, r in zip(dims, ranks) if d is not None and r == rank}
        target = next((d for d, r in zip(dims, ranks) if d is not None and r == rank), 0)
        if len(places) == 1 and all(
            r == 0 if d is None else r == rank for d, r in zip(dims, ranks)
        ):
            return prim.bind(*args, **params), target
        operands = []
        for x, d, r in zip(args, dims, ranks):
            if d is None and r == 0:
                operands.append(x)
            elif d is None:
                operands.append(_with_axis(x, target))
            elif r == rank:
                operands.append(move_axis(x, d, target, axis.size))
            else:  # one scalar per example, combined with arrays
                shape = (1,) * target + (axis.size,) + (1,) * (rank - target)
                operands.append(broadcast_in_dim(x, shape, (target,)))
        return prim.bind(*operands, **params), target


def _with_axis(x: Any, place: int) -> Any:
    shape = typeof(x).shape
    dims = tuple(i + (i >= place) for i in range(len(shape)))
    return broadcast_in_dim(x, (*shape[:place], 1, *shape[place:]), dims)


# Samples


def elementwise_samples(
    prim: Primitive,
    kinds: str,
    arity: int = 1,
    low: float = -2.0,
    high: float = 2.0,
    **params: Any,
) -> None:
    """Define the samples of an elementwise primitive, for the conformance kit.

    Operands are scalars, arrays, empty arrays and pairs that broadcast.

    Args:
      prim: the primitive.
      kinds: letters of the dtypes to try: ``f`` for floats, ``c`` complex, ``i`` integers, ``u``
        unsigned ones, ``b`` booleans.
      arity: the number of operands.
      low: lower bound of floats and complex numbers.
      high: their upper bound.
      params: the parameters.

    Returns:
      ``None``.

    >>> from primax_core.extend import Primitive
    >>> from primax_core.extend.elementwise import elementwise_samples
    >>> elementwise_samples(Primitive("acme_scale"), "fc", low=0.5)
    """

    @prim.rule(samples)
    def _samples():
        for kind in kinds:
            limits = {"low": low, "high": high} if kind in "fc" else {}
            make = {"f": f32, "c": c64, "i": i32, "u": u8, "b": b1}[kind]
            yield Sample(*(make(3, 2, **limits) for _ in range(arity)), **params)
            yield Sample(*(make(**limits) for _ in range(arity)), **params)
            if kind == "f":
                yield Sample(*(bf16(4, **limits) for _ in range(arity)), **params)
                yield Sample(*(f32(0, 3, **limits) for _ in range(arity)), **params)
        if arity == 2:
            make, limits = (f32, {"low": low, "high": high}) if "f" in kinds else (i32, {})
            make, limits = (b1, {}) if kinds == "b" else (make, limits)
            yield Sample(make(2, 3, **limits), make(**limits), **params)
            yield Sample(make(2, 1, **limits), make(2, 3, **limits), **params)


# Derivatives


def derivatives(prim: Primitive, *rules: Callable | None) -> None:
    """Define the JVP rule of an elementwise primitive from one function per operand.

    Args:
      prim: the primitive.
      rules: for each operand ``(g, out, *operands, **params) -> tangent``, or ``None`` if the
        derivative is zero. ``g`` is the tangent of the operand; the rule is linear in it.

    Returns:
      ``None``.

    Reverse mode transposes the rules. Broadcast operands and symbolic zeros are treated by the
    decorator's code, not by the functions.

    >>> from primax_core import grad, lax
    >>> from primax_core.extend.elementwise import derivatives, unary
    >>> from primax_core.extend.lowering import hlo
    >>> acme_sine_p = unary("acme_sine", ["float"], lambda ctx, x: hlo.sine(x))
    >>> derivatives(acme_sine_p, lambda g, out, x: lax.mul(g, lax.cos(x)))
    >>> float(grad(acme_sine_p.bind)(0.0))
    1.0
    """

    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        aval = typeof(out)
        total: Any = Zero(aval.tangent_aval())
        for rule, t in zip(rules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, to_shape(rule(t, out, *primals, **params), aval.shape))
        return out, total


def no_derivative(prim: Primitive) -> None:
    """Define a JVP rule with zero tangents.

    Args:
      prim: the primitive.

    Returns:
      ``None``.

    For piecewise constant functions, such as roundings, and functions with integer results.

    >>> from primax_core import grad
    >>> from primax_core.extend.elementwise import no_derivative, unary
    >>> from primax_core.extend.lowering import hlo
    >>> acme_ceil_p = unary("acme_ceil", ["float"], lambda ctx, x: hlo.ceil(x))
    >>> no_derivative(acme_ceil_p)
    >>> float(grad(acme_ceil_p.bind)(0.5))
    0.0
    """

    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):
        outs = prim.bind(*primals, **params)
        if prim.multiple_results:
            return outs, [Zero.like(o) for o in outs]
        return outs, Zero.like(outs)


def linear(prim: Primitive, transpose_rule: Callable) -> None:
    """Define the JVP and transpose rules of a primitive that is linear in its first operand.

    Args:
      prim: the primitive.
      transpose_rule: ``(ct, aval, *others, **params) -> cotangent of the operand``; ``aval`` is
        the type of the operand.

    Returns:
      ``None``.

    The tangent is the primitive itself, applied to the tangent of the operand.

    >>> from primax_core import grad, lax
    >>> from primax_core.extend.elementwise import linear, unary
    >>> from primax_core.extend.lowering import hlo
    >>> acme_negate_p = unary("acme_negate", ["float"], lambda ctx, x: hlo.negate(x))
    >>> linear(acme_negate_p, lambda ct, aval: lax.neg(ct))
    >>> float(grad(acme_negate_p.bind)(2.0))
    -1.0
    """

    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        t = tangents[0]
        if type(t) is Zero:
            return out, Zero.like(out)
        return out, prim.bind(t, *primals[1:], **params)

    @prim.rule(transpose)
    def _transpose(ct, x, *others, **params):
        if type(ct) is Zero:
            return [None] * (1 + len(others))
        assert is_linear(x)
        return [transpose_rule(ct, x.aval, *others, **params)] + [None] * len(others)


def scalar_like(x: ArrayLike, value: ArrayLike) -> Literal:
    """A scalar constant with the dtype and weak type of an operand.

    Args:
      x: an array or a number.
      value: a Python number.

    Returns:
      A literal, an operand of primitives: it becomes part of the jaxpr, not a constant.

    Rules use it for factors: ``mul(g, scalar_like(x, 2))``.

    >>> from primax_core import lax
    >>> from primax_core.extend.elementwise import scalar_like
    >>> lax.mul(np.ones(2, np.float32), scalar_like(np.ones(2, np.float32), 2)).tolist()
    [2.0, 2.0]
    """
    aval = typeof(x)
    return Literal(
        np.asarray(value).astype(aval.dtype)[()], ShapedArray((), aval.dtype, aval.weak_type)
    )


def scalar_of(dtype: DTypeLike, value: ArrayLike) -> Any:
    """A scalar constant of a dtype, also of a 64-bit dtype of an array made while these were
    enabled."""
    if dtype.itemsize < 8:
        return dtype.type(value)
    return literal(dtype.type(value), ShapedArray((), dtype))


def full_like(x: ArrayLike, value: ArrayLike) -> Any:
    """An array filled with one value, with the shape, dtype and weak type of ``x``."""
    return full_of(typeof(x), value)


def full_of(aval: ShapedArray, value: ArrayLike) -> Any:
    """An array filled with one value, of a given type.

    Args:
      aval: the type of the result.
      value: a Python number.

    Returns:
      An array or a literal.

    In a traced function it is a broadcast of a literal.

    >>> from primax_core.extend import ShapedArray
    >>> from primax_core.extend.elementwise import full_of
    >>> full_of(ShapedArray((2,), np.dtype("float32")), 3).tolist()
    [3.0, 3.0]
    """
    scalar = ShapedArray((), aval.dtype, aval.weak_type)
    fill = Literal(np.asarray(value).astype(aval.dtype)[()], scalar)
    return broadcast_in_dim(fill, aval.shape, ()) if aval.shape else fill


def to_shape(x: ArrayLike, shape: tuple[int, ...]) -> Any:
    """A scalar, or an array with axes of size 1, broadcast to a shape.

    Args:
      x: an operand of an elementwise primitive.
      shape: the shape of the result.

    Returns:
      An array; ``x`` itself if it has the shape.

    Rules need it where a tangent of a broadcast operand becomes one of the result.

    >>> from primax_core.extend.elementwise import to_shape
    >>> to_shape(np.ones((2, 1), np.float32), (2, 3)).shape
    (2, 3)
    """
    current = typeof(x).shape
    return x if current == shape else broadcast_in_dim(x, shape, tuple(range(len(current))))


def sum_to(ct: ArrayLike, aval: ShapedArray) -> Any:
    """The cotangent of an operand that was broadcast, the transpose of :func:`to_shape`.

    Args:
      ct: a cotangent of the result.
      aval: the type of the operand.

    Returns:
      An array of the operand's shape: the sum over axes that were broadcast.

    Transpose rules of elementwise primitives use it.

    >>> from primax_core.extend import typeof
    >>> from primax_core.extend.elementwise import sum_to
    >>> sum_to(np.ones((2, 3), np.float32), typeof(np.ones((2, 1)))).tolist()
    [[3.0], [3.0]]
    """
    shape = typeof(ct).shape
    if shape == aval.shape:
        return ct
    if not aval.shape:
        return sum_axes(ct, tuple(range(len(shape))))
    equal_axes = tuple(i for i, (d, e) in enumerate(zip(shape, aval.shape)) if d == e)
    summed = sum_axes(ct, tuple(i for i in range(len(shape)) if i not in equal_axes))
    return broadcast_in_dim(summed, aval.shape, equal_axes)


# The fast path of functions of one or two arrays


def fast_path(prim: Primitive, **defaults: Any) -> Callable[[_F], _F]:
    """Decorator of a function that only binds ``prim``, with default parameters.

    An eager call with arrays of known types launches the executable directly.
    """
    static = tuple(defaults.items())

    def decorate(fun: _F) -> _F:
        entries: dict[Any, Executable] = caches.bounded_cache()
        name = prim.name

        @wraps(fun)
        def call(*args, **params):
            if state.trace is None and not params:
                try:
                    entry = entries[(state.key, *[a._spec for a in args])]
                except (KeyError, AttributeError):
                    return first_call(args)
                return launch(entry, [a._buf for a in args], args, name)[0]
            try:  # what `api_boundary` does, without its call
                return fun(*args, **params)
            except Exception as error:
                fold_traceback(error)
                raise

        @api_boundary
        def first_call(args):
            out = fun(*args)
            _remember(entries, prim, args, static)
            return out

        return call  # type: ignore[return-value]

    return decorate


def _remember(
    entries: dict[Any, Executable], prim: Primitive, args: Sequence[Any], static: tuple[Any, ...]
) -> None:
    """Cache the executable of the last call, if it accepts the arguments without conversion."""
    try:
        specs = [a._spec for a in args]
    except AttributeError:
        return
    exe = prim.executables.get((state.key, static, *specs))
    if exe is not None and exe.plain:
        entries[(state.key, *specs)] = exe
