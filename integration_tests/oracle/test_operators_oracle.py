"""Operators of arrays against the real jax: promotion, broadcasting, values, errors, jaxprs."""

import itertools
import operator as op
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import same, same_text

import primax_core as px
from primax_core._base import config
from primax_core.lax import operators  # noqa: F401
from primax_core.lax.conversion import convert_element_type as cast

BINARY = [op.add, op.sub, op.mul, op.truediv, op.floordiv, op.mod, op.pow, divmod,
          op.and_, op.or_, op.xor, op.lshift, op.rshift,
          op.eq, op.ne, op.lt, op.le, op.gt, op.ge]  # fmt: skip
UNARY = [op.neg, op.pos, abs, op.invert, round]
DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "bfloat16", "float16", "float32", "complex64",
          "int4", "float8_e4m3fn"]  # fmt: skip
WIDE = ["bool", "int8", "int32", "int64", "uint32", "uint64", "float32", "float64", "complex128"]
SCALARS = [True, 3, 2.5, 1 + 2j, np.float32(1.5), np.int8(3), np.float64(2)]


def abstract(api, fun, *args):
    """Dtypes, shapes and weak types of the results, or the error's type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            types = api.eval_shape(fun, *args)
        except Exception as e:
            return next(c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins")
    return [(str(o.dtype), o.shape, bool(o.weak_type)) for o in jax.tree.leaves(types)]


def scalars_of(api, kind):
    """Abstract operands: an array of a dtype, or a weakly typed scalar of a Python type."""
    if isinstance(kind, str):
        return api.ShapeDtypeStruct((2,), np.dtype(kind))
    return api.ShapeDtypeStruct((), kind[0], weak_type=True)


WEAK = [("int32",), ("float32",), ("complex64",)]
SIGNED = ["int8", "int32", "int64", ("int64",)]
# The reference has no powers of 4-bit integers, and its powers of uint64 with a signed exponent are
# weak though an operand is strong.
UNLIKE = {
    op.pow: {pair for s in SIGNED for pair in (("uint64", s), (s, "uint64"))}
    | {(a, "int4") for a in ("bool", "int4", ("int32",))}
    | {("int4", a) for a in ("bool", ("int32",))}
}


FEW = [op.add, op.truediv, op.floordiv, op.pow, op.lshift, op.lt]


@pytest.mark.parametrize(
    "fun, mode",
    [(f, "standard") for f in BINARY] + [(f, m) for f in FEW for m in ("strict", "x64")],
)
def test_types(fun, mode):
    x64 = mode == "x64"
    weak = [("int64",), ("float64",), ("complex128",)] if x64 else WEAK
    kinds = (WIDE if x64 else DTYPES) + weak
    promotion = "strict" if mode == "strict" else "standard"
    wrong = []
    with (
        config.enable_x64(x64), jax.enable_x64(x64),
        config.numpy_dtype_promotion(promotion), jax.numpy_dtype_promotion(promotion),
    ):  # fmt: skip
        for a, b in itertools.product(kinds, kinds):
            if mode == "strict" and isinstance(a, str) and isinstance(b, str) and a < b:
                continue
            if (a, b) in UNLIKE.get(fun, ()):
                continue
            mine = abstract(px, fun, scalars_of(px, a), scalars_of(px, b))
            reference = abstract(jax, fun, scalars_of(jax, a), scalars_of(jax, b))
            if mine != reference:
                wrong.append((a, b, mine, reference))
    assert not wrong


@pytest.mark.parametrize("fun", UNARY, ids=lambda f: f.__name__)
def test_unary_types(fun):
    for kind in DTYPES + WEAK:
        if fun is abs and kind == "int4":
            continue  # the reference has none
        mine = abstract(px, fun, scalars_of(px, kind))
        assert mine == abstract(jax, fun, scalars_of(jax, kind)), kind


def accepted(fun, dtype):
    """Functions of one array, with scalars on either side, that the reference accepts."""
    x = jax.ShapeDtypeStruct((3,), np.dtype(dtype))
    functions = []
    for s in SCALARS:
        for f in (lambda v, s=s: fun(v, s), lambda v, s=s: fun(s, v)):
            try:
                jax.eval_shape(f, x)
            except TypeError:
                with pytest.raises(TypeError):
                    px.eval_shape(f, px.ShapeDtypeStruct((3,), np.dtype(dtype)))
            else:
                functions.append(f)
    return functions


@pytest.mark.parametrize("fun", BINARY, ids=lambda f: f.__name__)
def test_scalars_under_jit(fun):
    for dtype in ("int8", "float32", "bfloat16"):
        x = np.array([1, 2, 7]).astype(dtype)
        functions = accepted(fun, dtype)
        both = lambda v: [f(v) for f in functions]  # noqa: B023
        same(px.jit(both)(x), jax.jit(both)(x), dtype)
        if fun in (op.floordiv, op.mod, divmod) or (fun is op.pow and dtype == "int8"):
            continue  # inlined here, a call there
        for f in functions:
            same_text(px.make_jaxpr(f)(x), jax.make_jaxpr(f)(x))


@pytest.mark.parametrize("fun", [op.add, op.truediv, op.floordiv, divmod, op.pow, op.lt, op.and_])
def test_scalars_eagerly(fun):
    x = np.array([1, 2, 7], np.float32 if fun is not op.and_ else np.int32)
    mine, reference = cast(x, x.dtype), jnp.asarray(x)
    for s in (2.5, True, np.float64(2), 0.0, -0.0, 0) if fun is not op.and_ else (True, 3):
        for _ in range(2):  # the second call uses the fast path
            same(fun(mine, s), fun(reference, s), f"{s}")
            same(fun(s, mine), fun(s, reference), f"{s}")


@pytest.mark.parametrize("fun", BINARY[:8], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "float32"])
def test_values(fun, dtype):
    if dtype == "float32":
        numbers = [0.0, -0.0, 1.0, -1.0, 0.1, 7.0, -7.0, 2.5, np.nan]
        # The array API standard's quotients with infinity differ from the reference's.
        numbers += [] if fun is op.floordiv else [np.inf, -np.inf]
    else:
        info = np.iinfo(dtype)
        numbers = [0, 1, 2, 7, 100] + ([-1, -2, -7] if info.min else [])
        if fun is not op.pow:
            numbers += [info.min, info.max]
    table = np.array(list(itertools.product(numbers, numbers))).astype(dtype)
    x, y = table[:, 0].copy(), table[:, 1].copy()
    same(fun(cast(x, dtype), cast(y, dtype)), fun(jnp.asarray(x), jnp.asarray(y)), fun.__name__)


SHAPES = [((3,), (2, 3)), ((2, 1), (3,)), ((), (2, 3)), ((1,), (3,)), ((2, 3), (3, 3)),
          ((3,), (4,)), ((0,), (2, 1)), ((2, 3), (4,)), ((4, 1, 3), (2, 1))]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES)
def test_broadcasting(shapes):
    a, b = (np.arange(np.prod(s), dtype="f").reshape(s) for s in shapes)
    for x, y in ((a, b), (b, a)):
        try:
            expected = jnp.asarray(x) - jnp.asarray(y)
        except (TypeError, ValueError) as e:
            with pytest.raises(type(e), match=re.escape(str(e))):
                cast(x, "float32") - cast(y, "float32")
            continue
        same(cast(x, "float32") - cast(y, "float32"), expected)
        same_text(px.make_jaxpr(op.sub)(x, y), jax.make_jaxpr(op.sub)(x, y))
        mine = px.vjp(op.mul, x, y)[1](np.asarray(expected))
        same(mine, jax.vjp(op.mul, x, y)[1](np.asarray(expected)))


def test_numpy_operands_on_the_left():
    x, y = np.ones(3), cast(np.arange(3, dtype="f"), "float32")
    for fun in (op.add, op.mul, op.lt, op.eq, op.pow):
        for left in (x, np.float32(2), np.float64(2), np.int8(2)):
            same(fun(left, y), fun(left, jnp.arange(3, dtype="f")), fun.__name__)


@pytest.mark.parametrize("fun", BINARY, ids=lambda f: f.__name__)
def test_invalid_operands(fun):
    for other in ([1.0], (1.0,), {1}, {}, None, "a", object()):
        for swap in (False, True):
            mine, reference = cast(np.float32([1]), "float32"), jnp.ones(1, "f")
            args = [(v, other)[:: -1 if swap else 1] for v in (mine, reference)]
            try:
                expected = fun(*args[1])
            except TypeError:
                with pytest.raises(TypeError):
                    fun(*args[0])
                continue
            if not (fun is op.mod and swap and other == "a"):  # string formatting
                assert fun(*args[0]) is expected


def test_powers():
    for x in (np.float32([1.5, -2, 0]), np.int32([3, -2, 0]), np.bool_([True, False])):
        for e in (0, 1, 2, 3, -1, True, np.int8(2), np.array(2)):
            f = lambda v: v**e  # noqa: B023
            try:
                expected = f(jnp.asarray(x))
            except TypeError as error:
                with pytest.raises(TypeError, match="Integers cannot be raised to negative"):
                    f(cast(x, x.dtype))
                assert "Integers cannot be raised to negative" in str(error)
                continue
            same(f(cast(x, x.dtype)), expected, f"{x} ** {e}")
            same_text(px.make_jaxpr(f)(x), jax.make_jaxpr(f)(x))
    known = cast(np.int32(3), "int32")
    same(2**known, 2 ** jnp.int32(3))
    same(cast(np.float32([2]), "float32") ** known, jnp.float32([2]) ** jnp.int32(3))
    with pytest.raises(TypeError):
        pow(known, 2, 3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64", "int32", "uint8"])
def test_round(dtype):
    x = np.array([0.5, 1.5, 2.675, 123.456, 7.77]).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for digits in (None, 0, 2, -1):
            args = () if digits is None else (digits,)
            try:
                expected = round(jnp.asarray(x), *args)
            except NotImplementedError:
                with pytest.raises(NotImplementedError):
                    round(cast(x, dtype), *args)
                continue
            same(round(cast(x, dtype), *args), expected, f"{digits}")


@pytest.mark.filterwarnings("ignore:overflow")
def test_out_of_range_python_numbers():
    x, i8, u8 = np.ones(1, "f"), np.ones(1, "i1"), np.ones(1, "u1")
    for v, s in ((x, 2**31), (x, 2**40), (i8, 2**40)):
        with pytest.raises(OverflowError):
            cast(v, v.dtype) + s
        with pytest.raises(OverflowError):
            px.jit(lambda v: v + s)(v)  # noqa: B023
    for v, s in ((i8, 200), (u8, 300), (u8, -1), (x, 1e40)):
        same(cast(v, v.dtype) + s, jnp.asarray(v) + s)
        same(px.jit(lambda v: v + s)(v), jnp.asarray(v) + s)  # noqa: B023


def test_rank_promotion():
    x, y = cast(np.ones(3, "f"), "float32"), cast(np.ones((2, 3), "f"), "float32")
    with config.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="Operands could not be broadcast together for add"):
            x + y
        assert (x + cast(np.float32(1), "float32")).shape == (3,)
    with config.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        x + y


def test_rows():
    for n in (0, 3, 250):
        x = np.arange(n * 2, dtype="f").reshape(n, 2)
        same(list(cast(x, "float32")), list(jnp.asarray(x)))
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(cast(1.0, "float32"))
    total = px.jit(lambda x: sum(row for row in x))(np.arange(6, dtype="f").reshape(3, 2))
    assert np.asarray(total).tolist() == [6, 9]


def test_derivatives():
    x, y = np.float32([0.7, -1.3, 2.2]), np.float32([1.1, 0.4, -0.6])
    two = [op.add, op.sub, op.mul, op.truediv, op.mod, op.floordiv, lambda a, b: abs(a) ** b]
    one = [lambda x: x**2 + 3 * x, lambda x: 2.0 / x, lambda x: x**0, lambda x: -(x**3)]

    def derivatives(api):
        return api.jit(
            lambda x, y: (
                [api.jvp(f, (x, y), (y, x)) for f in two],
                [api.vjp(f, x, y)[1](x) for f in two],
                [api.vjp(f, x)[1](y) for f in one],
                api.vmap(lambda a, b: a // b)(x, y),
            )
        )(x, y)

    same(list(derivatives(px)), list(derivatives(jax)), rtol=1e-5)
    same(px.vjp(op.truediv, x, y)[1](x), jax.vjp(op.truediv, x, y)[1](x), rtol=1e-5)
    same(px.grad(lambda x: x * x)(1.0), jax.grad(lambda x: x * x)(1.0))
