"""Evaluation of scalar jaxprs on the host, with NumPy: nothing is compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from .. import lax
from .._base.source import api_boundary
from .._ir import dtypes
from .._ir.jaxpr import Eqn, Jaxpr, Literal, Var
from .._ir.primitive import Primitive
from .._trace.core import Tracer
from .._transform.expansion import expanded
from .._transform.zeros import add_any_p

Scalars = Sequence[Any]


@api_boundary
def evaluate_scalars(jaxpr: Jaxpr, values: Scalars) -> list[Any]:
    """The results of a jaxpr of scalars, computed with NumPy on the host.

    For index maps, sizes of grids and conditions whose operands are known: it takes microseconds,
    where the evaluation of each operation on arrays would compile it first. Results are those of
    XLA on a CPU, bit for bit: integers wrap around, a division by zero gives all ones, casts of
    floats to integers saturate, subnormal operands count as zero in float32 and float64 arithmetic.

    Supported are Booleans, integers and floats, arithmetic, comparisons, operations on bits,
    rounding, casts, ``select``, ``clamp``, ``cond`` and ``switch``, and primitives with an
    expansion, such as calls of jitted functions.

    Args:
      jaxpr: a jaxpr whose arguments and results are scalars.
      values: Python or NumPy scalars, or arrays without axes, one for each argument.

    Returns:
      A list of NumPy scalars.

    Raises:
      NotImplementedError: with the name of a primitive that is not supported.
      TypeError: an argument is not a scalar, or has a type that is not supported.
      ValueError: the number of values is wrong, or a value does not fit its type.

    >>> import primax_core as px
    >>> jaxpr = px.make_jaxpr(lambda i, j: (i * 8 + j, i > j))(2, 1)
    >>> evaluate_scalars(jaxpr, [3, 5])
    [np.int32(29), np.False_]
    """
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(f"evaluate_scalars takes a Jaxpr, got {jaxpr!r}")
    if len(values) != len(jaxpr.invars):
        raise ValueError(f"the jaxpr takes {len(jaxpr.invars)} arguments, got {len(values)}")
    args = [_argument(i, x, v.aval) for i, (x, v) in enumerate(zip(values, jaxpr.invars))]
    with np.errstate(all="ignore"):
        return _evaluate(jaxpr, args)


def _argument(i: int, x: Any, aval: Any) -> Any:
    _check_type(f"argument {i} of the jaxpr", aval)
    if isinstance(x, Tracer):
        raise TypeError(f"evaluate_scalars takes known values, but value {i} is a tracer: {x}")
    if np.ndim(x):
        raise TypeError(f"evaluate_scalars takes scalars, but value {i} has shape {np.shape(x)}")
    array = np.asarray(x)
    if _rank(array.dtype) > _rank(aval.dtype):
        raise TypeError(f"value {i}, {x!r}, is given for an argument of type {aval.dtype.name}")
    try:
        return (array.astype(aval.dtype) if hasattr(x, "dtype") else np.asarray(x, aval.dtype))[()]
    except OverflowError:
        raise ValueError(f"value {i}, {x!r}, is out of range of {aval.dtype.name}") from None


def _rank(dtype: Any) -> int:
    """0 for Booleans, 1 for integers, 2 for other types."""
    return {"b": 0, "i": 1, "u": 1}.get(dtype.kind, 2)


def _check_type(what: str, aval: Any) -> None:
    dtype = getattr(aval, "dtype", None)
    if getattr(aval, "shape", None) != () or dtype not in _TYPES:
        raise TypeError(
            f"evaluate_scalars evaluates jaxprs of scalars, but {what} has type {aval}: numbers "
            f"and Booleans without axes are supported"
        )


class _Plan:
    """A jaxpr whose types were checked, with the function of each equation.

    Atoms are variables, or the values of literals.
    """

    __slots__ = ("constants", "outs", "steps")

    def __init__(self, jaxpr: Jaxpr):
        self.constants = {v: _constant(x, v.aval) for v, x in zip(jaxpr.constvars, jaxpr.consts)}
        self.outs = [_atom(v) for v in jaxpr.outvars]
        self.steps = [
            (_function_of(eqn), [_atom(v) for v in eqn.invars], eqn.outvars) for eqn in jaxpr.eqns
        ]

    def run(self, env: dict[Any, Any]) -> list[Any]:
        env.update(self.constants)
        for fun, atoms, outvars in self.steps:
            outs = fun(*[env[v] if type(v) is Var else v for v in atoms])
            if len(outvars) == 1:
                env[outvars[0]] = outs
            else:
                env.update(zip(outvars, outs))
        return [env[v] if type(v) is Var else v for v in self.outs]


def _evaluate(jaxpr: Jaxpr, args: Scalars) -> list[Any]:
    plan = jaxpr.cache.get("scalars")
    if plan is None:
        plan = jaxpr.cache["scalars"] = _Plan(jaxpr)
    outs: list[Any] = plan.run(dict(zip(jaxpr.invars, args)))
    return outs


def _constant(x: Any, aval: Any) -> Any:
    if isinstance(x, Tracer):
        raise TypeError(
            f"evaluate_scalars takes known values, but the jaxpr closes over a tracer: {x}"
        )
    _check_type("a constant", aval)
    return np.asarray(x, aval.dtype)[()]


def _atom(v: Any) -> Any:
    return _constant(v.scalar, v.aval) if type(v) is Literal else v


def _function_of(eqn: Eqn) -> Callable[..., Any]:
    """A function of values; it returns the result, or a list if the equation has not just one."""
    prim, params = eqn.primitive, eqn.params
    for v in (*eqn.invars, *eqn.outvars):
        _check_type(f"an operand or result of {prim.name}", v.aval)
    if prim is lax.cond_p:
        return _one_or_all(eqn, partial(_branch, params["branches"]))
    fun = _FUNCTIONS.get(prim)
    if fun is not None:
        return partial(fun, **params) if params else fun
    avals = [v.aval for v in eqn.invars]
    if expanded(prim, avals, params) is None:
        raise NotImplementedError(
            f"evaluate_scalars does not support the primitive {prim.name}: evaluate the jaxpr with "
            "eval_jaxpr"
        )
    return _one_or_all(eqn, lambda *xs: _evaluate(expanded(prim, avals, params), xs))


def _one_or_all(eqn: Eqn, fun: Callable[..., list[Any]]) -> Callable[..., Any]:
    return (lambda *xs: fun(*xs)[0]) if len(eqn.outvars) == 1 else fun


def _branch(branches: Sequence[Jaxpr], index: Any, *operands: Any) -> list[Any]:
    return _evaluate(branches[min(max(int(index), 0), len(branches) - 1)], operands)


# Types

_FLOATS: Final = frozenset(map(np.dtype, (dtypes.bfloat16, np.float16, np.float32, np.float64)))
_TYPES: Final = _FLOATS | frozenset(
    map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))
)


def _bits(x: Any) -> int:
    return 8 * x.dtype.itemsize


def _is_float(x: Any) -> bool:
    return x.dtype.kind not in "iub"


def _normal(x: Any) -> Any:
    """The number, with a subnormal one replaced by zero, as XLA's arithmetic on a CPU does."""
    if (
        x.dtype.kind not in "iub"
        and x.dtype in _FLUSHED
        and 0 < abs(x) < dtypes.finfo(x.dtype).tiny
    ):
        return np.copysign(x.dtype.type(0), x)
    return x


_FLUSHED: Final = frozenset(map(np.dtype, (np.float32, np.float64, dtypes.bfloat16)))


# Functions


def _on_normal(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function of numbers whose results have the type of the operands."""

    def apply(*xs: Any, **_: Any) -> Any:
        if xs[0].dtype.kind in "iu":
            return fun(*xs)
        return _normal(fun(*map(_normal, xs)).astype(xs[0].dtype))

    return apply


def _comparison(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: fun(_normal(x), _normal(y))


def _div(x: Any, y: Any) -> Any:
    if _is_float(x):
        return _normal((_normal(x) / _normal(y)).astype(x.dtype))
    if y == 0:
        return ~x.dtype.type(0)
    quotient = abs(int(x)) // abs(int(y))
    return _wrapped(quotient if (x < 0) == (y < 0) else -quotient, x.dtype)


def _rem(x: Any, y: Any) -> Any:
    if not _is_float(x) and y == 0:
        return x
    if not _is_float(x):
        remainder = abs(int(x)) % abs(int(y))
        return _wrapped(-remainder if x < 0 else remainder, x.dtype)
    return np.fmod(x, _normal(y)).astype(x.dtype)


def _wrapped(n: int, dtype: Any) -> Any:
    """An integer modulo the range of a type."""
    mask = (1 << 8 * dtype.itemsize) - 1
    return np.array(n & mask, f"u{dtype.itemsize}").view(dtype)[()]


def _integer_pow(x: Any, *, y: int) -> Any:
    out, n = None, abs(y)
    if y == 0:
        return x.dtype.type(1)
    if y == 3:
        return _mul(_mul(x, x), x)
    while True:
        if n & 1:
            out = x if out is None else _mul(out, x)
        n >>= 1
        if not n:
            break
        x = _mul(x, x)
    return _div(x.dtype.type(1), out) if y < 0 else out


def _extremum(fun: Callable[..., Any], preferred: bool) -> Callable[[Any, Any], Any]:
    """``preferred``: whether -0.0 is taken rather than 0.0."""

    def apply(x: Any, y: Any) -> Any:
        if not _is_float(x):
            return fun(x, y)
        x, y = _normal(x), _normal(y)
        if x == y == 0:
            return x if bool(np.signbit(x)) is preferred else y
        return fun(x, y).astype(x.dtype)

    return apply


def _sign(x: Any) -> Any:
    if _is_float(x):
        x = _normal(x)
    return np.sign(x) if x != 0 else x


def _round(x: Any, *, rounding_method: int) -> Any:
    if rounding_method == lax.RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x).astype(x.dtype)
    if not np.isfinite(x):
        return x
    whole = np.trunc(x)
    away = whole + np.copysign(x.dtype.type(1), x) if abs(x - whole) >= 0.5 else whole
    return np.copysign(away, x).astype(x.dtype)


def _shift(direction: str) -> Callable[[Any, Any], Any]:
    def apply(x: Any, by: Any) -> Any:
        n, width = int(by), _bits(x)
        bits = int(x) & (1 << width) - 1
        if direction == "arithmetic" and bits >> width - 1:  # unsigned integers too
            bits -= 1 << width
        if not 0 <= n < width:
            return _wrapped(-1 if bits < 0 else 0, x.dtype)
        return _wrapped(bits << n if direction == "left" else bits >> n, x.dtype)

    return apply


def _count_bits(x: Any) -> Any:
    return x.dtype.type((int(x) & (1 << _bits(x)) - 1).bit_count())


def _leading_zeros(x: Any) -> Any:
    return x.dtype.type(_bits(x) - (int(x) & (1 << _bits(x)) - 1).bit_length())


def _select(which: Any, *cases: Any) -> Any:
    return cases[min(max(int(which), 0), len(cases) - 1)]


def _cast(x: Any, *, new_dtype: Any, **_: Any) -> Any:
    new = np.dtype(new_dtype)
    if not _is_float(x):
        return x.astype(new) if new in _FLOATS or new == np.bool_ else _wrapped(int(x), new)
    if new == np.bool_:
        return np.bool_(_normal(x) != 0)
    if new in _FLOATS:
        # A bfloat16 is the upper half of a float32.
        halves = {x.dtype, new} == {np.dtype(np.float32), np.dtype(dtypes.bfloat16)}
        return (x if halves else _normal(x)).astype(new)
    number, limits = float(x), np.iinfo(new)
    if not math.isfinite(number):
        return new.type(limits.max if number > 0 else limits.min if number < 0 else 0)
    return new.type(min(max(int(number), limits.min), limits.max))


def _clamp(low: Any, x: Any, high: Any) -> Any:
    return _MIN(_MAX(low, x), high)


def _same(x: Any, **_: Any) -> Any:
    return x


_ADD: Final = _on_normal(np.add)
_mul: Final = _on_normal(np.multiply)
_MAX: Final = _extremum(np.maximum, preferred=False)
_MIN: Final = _extremum(np.minimum, preferred=True)

_FUNCTIONS: Final[dict[Primitive, Callable[..., Any]]] = {
    lax.abs_p: np.abs,
    lax.add_p: _ADD,
    add_any_p: _ADD,
    lax.and_p: np.bitwise_and,
    lax.broadcast_in_dim_p: _same,
    lax.ceil_p: _on_normal(np.ceil),
    lax.clamp_p: _clamp,
    lax.clz_p: _leading_zeros,
    lax.convert_element_type_p: _cast,
    lax.copy_p: _same,
    lax.div_p: _div,
    lax.eq_p: _comparison(np.equal),
    lax.floor_p: _on_normal(np.floor),
    lax.ge_p: _comparison(np.greater_equal),
    lax.gt_p: _comparison(np.greater),
    lax.integer_pow_p: _integer_pow,
    lax.is_finite_p: np.isfinite,
    lax.le_p: _comparison(np.less_equal),
    lax.lt_p: _comparison(np.less),
    lax.max_p: _MAX,
    lax.min_p: _MIN,
    lax.mul_p: _mul,
    lax.ne_p: _comparison(np.not_equal),
    lax.neg_p: np.negative,
    lax.not_p: np.invert,
    lax.or_p: np.bitwise_or,
    lax.population_count_p: _count_bits,
    lax.rem_p: _rem,
    lax.reshape_p: _same,
    lax.round_p: _round,
    lax.select_n_p: _select,
    lax.shift_left_p: _shift("left"),
    lax.shift_right_arithmetic_p: _shift("arithmetic"),
    lax.shift_right_logical_p: _shift("logical"),
    lax.sign_p: _sign,
    lax.sqrt_p: _on_normal(np.sqrt),
    lax.square_p: lambda x: _mul(x, x),
    lax.squeeze_p: _same,
    lax.stop_gradient_p: _same,
    lax.sub_p: _on_normal(np.subtract),
    lax.xor_p: np.bitwise_xor,
}
