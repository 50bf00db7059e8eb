"""Elementwise functions against the real jax: values, derivatives, batches, jaxprs, errors."""

import itertools
import warnings

import jax
import ml_dtypes
import numpy as np
import pytest
from agreement import same, same_text
from jax import lax as theirs

import primax_core as px
from primax_core._base.config import enable_x64
from primax_core.lax import (
    arithmetic,
    bitwise,
    broadcasting,  # noqa: F401
    comparison,
    conversion,
    exponential,
    magnitude,
    permuting,  # noqa: F401
    reducing,  # noqa: F401
    rounding,
    selection,
    special,
    trigonometric,
)

PAGES = (
    arithmetic, bitwise, comparison, conversion, exponential, magnitude, rounding, selection,
    special, trigonometric,
)  # fmt: skip


class ours:
    """The functions of all modules."""


for page in PAGES:
    for name, value in vars(page).items():
        if callable(value) and getattr(value, "__module__", "") == page.__name__:
            setattr(ours, name, staticmethod(value))

INEXACT = """exp exp2 expm1 log log2 log1p logistic sqrt rsqrt sin cos tan asin acos atan sinh cosh
tanh asinh acosh atanh square neg one_minus_square reciprocal abs sign""".split()
FLOAT = "cbrt floor ceil round is_finite erf erfc erf_inv".split()
COMPLEX = "real imag conj".split()
SIGNED = "neg abs sign square bitwise_not population_count clz".split()
SMOOTH = [n for n in INEXACT + FLOAT if n != "is_finite"]

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 0.9, 2.5, -2.5, 30.0, np.inf, -np.inf, np.nan]
INSIDE = [-0.9, -0.5, -0.2, 0.1, 0.4, 0.8]


def each(names, where):
    """One jitted function that calls many functions."""
    return lambda *args: [getattr(where, n)(*args) for n in names]


def compare(names, make, *args, rtol=None):
    """Compare the results of ``make`` for the functions of both libraries, one by one."""
    mine = px.jit(make(px, each(names, ours)))(*args)
    reference = jax.jit(make(jax, each(names, theirs)))(*args)
    parts = (jax.tree.leaves(mine), jax.tree.leaves(reference))
    assert len(parts[0]) == len(parts[1])
    for i, (a, b) in enumerate(zip(*parts)):
        same(a, b, f"{names[i % len(names)]} of {args}", rtol)


def value(api, fun):
    return fun


def forward(api, fun):
    return lambda *args: api.jvp(fun, args[: len(args) // 2], args[len(args) // 2 :])[1]


def second(api, fun):
    def call(*args):
        half = len(args) // 2
        return api.jvp(lambda *a: api.jvp(fun, a, args[half:])[1], args[:half], args[half:])[1]

    return call


def backward_of(names):
    """Cotangents of each function."""

    def make(api, _):
        where = ours if api is px else theirs

        def call(*args):
            results = []
            for n in names:
                out, pull = api.vjp(getattr(where, n), *args[:-1])
                results.append(pull(args[-1].astype(out.dtype) if hasattr(out, "dtype") else 0))
            return results

        return call

    return make


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e5m2"])
def test_values_of_floats(dtype):
    names = INEXACT + FLOAT
    if dtype == "float8_e5m2":
        names.remove("erfc")  # the reference does not compile it
    compare(names, value, np.array(SPECIAL).astype(dtype))


def test_values_of_complex_numbers():
    parts = [0.3, -1.2, 0.0, 2.0]  # the reference loses the sign of -0.0 parts
    z = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    compare([*INEXACT, *COMPLEX], value, z, rtol=2e-5)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "uint32"])
def test_values_of_integers(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 2, 7, 100, info.min, info.max]).astype(dtype)
    compare([n for n in SIGNED if n != "abs" or info.min], value, x)


def test_values_of_small_integers():
    x = np.array([0, 1, 7, -8, -1]).astype(ml_dtypes.int4)
    compare(["neg", "sign", "bitwise_not", "square"], value, x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_derivatives(dtype):
    with enable_x64(dtype == "float64"), jax.enable_x64(dtype == "float64"):
        x = np.array(INSIDE).astype(dtype)
        t = np.linspace(0.5, 1.5, x.size).astype(dtype)
        rtol = {"float32": 1e-5, "float64": 1e-11, "bfloat16": 3e-2}[dtype]
        compare(SMOOTH, forward, x, t, rtol=rtol)
        if dtype != "bfloat16":
            compare(SMOOTH, second, x, t, rtol=20 * rtol)


def test_derivatives_at_singular_points():
    x = np.array(SPECIAL, np.float32)
    # The reference scales the derivative of asinh; at infinity both are 0.
    compare(SMOOTH, forward, x, np.ones_like(x), rtol=2e-5)


def test_derivatives_of_complex_functions():
    z = np.array([0.3 + 0.2j, -0.4 + 1.1j, 1.5 - 0.3j, -2 - 0.7j], np.complex64)
    t = np.array([1, 1j, 0.5 - 1j, 2], np.complex64)
    names = [*INEXACT, "conj", "real", "imag"]
    compare(names, forward, z, t, rtol=1e-4)


def test_cotangents():
    x = np.array(INSIDE, np.float32)
    ct = np.linspace(0.5, 1.5, x.size).astype(np.float32)
    mine = px.jit(lambda x, ct: [px.vjp(getattr(ours, n), x)[1](ct)[0] for n in SMOOTH])(x, ct)
    reference = jax.jit(lambda x, ct: [jax.vjp(getattr(theirs, n), x)[1](ct)[0] for n in SMOOTH])
    same(mine, reference(x, ct), "vjp", 1e-5)


def test_complex_cotangents():
    z = np.array([0.3 + 0.2j, 0j, 1.5 - 0.3j], np.complex64)
    ct = np.array([1, 1j, 2 - 1j], np.complex64)
    for names, c in ((["exp", "conj", "sign", "sqrt"], ct), (["real", "imag", "abs"], ct.real)):
        mine = px.jit(
            lambda z, c: [px.vjp(getattr(ours, n), z)[1](c)[0] for n in names]  # noqa: B023
        )(z, c)
        reference = jax.jit(
            lambda z, c: [jax.vjp(getattr(theirs, n), z)[1](c)[0] for n in names]  # noqa: B023
        )
        same(mine, reference(z, c), str(names), 2e-5)


# Two operands

REAL2 = "add sub mul div rem max min pow atan2 nextafter".split()
COMPARE = "eq ne lt le gt ge".split()
INTEGER2 = """add sub mul div rem max min bitwise_and bitwise_or bitwise_xor shift_left
shift_right_arithmetic shift_right_logical eq ne lt le gt ge""".split()


def pairs(values, dtype):
    table = np.array(list(itertools.product(values, values))).astype(dtype)
    return table[:, 0].copy(), table[:, 1].copy()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_values_of_two_floats(dtype):
    x, y = pairs([0.0, -0.0, 1.5, -2.0, 3.0, np.inf, -np.inf, np.nan], dtype)
    compare(REAL2 + COMPARE, value, x, y)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
def test_values_of_two_integers(dtype):
    info = np.iinfo(dtype)
    x, y = pairs([0, 1, 3, 7, 31, 40, info.min, info.max, -1], dtype)
    compare(INTEGER2, value, x, y)
    compare(["mulhi"], value, x, y)


def test_values_of_two_booleans_and_complex_numbers():
    x, y = pairs([False, True], bool)
    compare("max min bitwise_and bitwise_or bitwise_xor eq ne lt le gt ge".split(), value, x, y)
    x, y = pairs([1 + 2j, 1 - 2j, -1 + 0.5j, 2], np.complex64)
    compare("add sub mul div max min pow eq ne".split(), value, x, y, rtol=2e-5)


def test_total_order():
    x, y = pairs([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    for name in ("eq_to", "le_to", "lt_to"):
        mine = getattr(comparison, name + "_p").bind(x, y)
        same(mine, getattr(theirs, name + "_p").bind(x, y), name)


def test_derivatives_of_two_floats():
    x, y = pairs([0.7, 1.3, 2.0], np.float32)
    t, u = np.linspace(0.5, 1, x.size).astype("f"), np.linspace(2, 1, x.size).astype("f")
    compare(REAL2, forward, x, y, t, u, rtol=1e-5)
    compare(REAL2, second, x, y, t, u, rtol=1e-4)


@pytest.mark.parametrize("which", [0, 1])
def test_derivatives_of_two_floats_at_singular_points(which):
    x, y = pairs([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, np.nan], np.float32)
    t, u = np.ones_like(x) * (which == 0), np.ones_like(x) * (which == 1)

    def make(api, fun):
        if which == 0:
            return lambda x, y, t: api.jvp(lambda x: fun(x, y), (x,), (t,))[1]
        return lambda x, y, t: api.jvp(lambda y: fun(x, y), (y,), (t,))[1]

    compare([n for n in REAL2 if n != "atan2"], make, x, y, t + u, rtol=1e-5)


def test_power_with_integers():
    x, y = pairs([0, 1, -1, 2, -2], np.float32)
    y = y.astype(np.int32)
    compare(["pow"], value, x, y)
    compare(["pow"], lambda api, f: lambda x, y: api.jvp(lambda x: f(x, y), (x,), (x,))[1], x, y)
    for exponent in (-3, -1, 0, 1, 2, 3, 4, 7, 10):
        a = px.jvp(lambda x, n=exponent: ours.integer_pow(x, n), (x,), (x + 1,))
        b = jax.jvp(lambda x, n=exponent: theirs.integer_pow(x, n), (x,), (x + 1,))
        same(a, b, str(exponent))


SHAPES = [((3,), ()), ((), (3,)), ((2, 3), (1, 3)), ((2, 1), (1, 3)), ((), ()), ((0, 2), (1, 2))]


@pytest.mark.parametrize("shapes", SHAPES)
def test_repeated_operands(shapes):
    x, y = (np.linspace(1, 2, int(np.prod(s))).reshape(s).astype("f") for s in shapes)
    names = "add sub mul div max pow atan2 complex".split()
    compare(names, value, x, y)
    compare(names, forward, x, y, x + 1, y - 3, rtol=1e-5)

    def cotangents(api, fun):
        def call(x, y):
            out, pull = api.vjp(fun, x, y)
            return pull(out)

        return call

    compare(names, cotangents, x, y, rtol=1e-5)


DIMS = [(0, 0), (0, 1), (1, 0), (None, 0), (1, None)]


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1), (1, 3))])
def test_batching_of_two_operands(shapes, dims):
    args, axes = [], []
    for s, d in zip(shapes, dims):
        d = None if d is None else min(d, len(s))
        full = s if d is None else (*s[:d], 4, *s[d:])
        args.append(np.random.default_rng(len(full)).random(full).astype("f"))
        axes.append(d)
    mine = px.jit(px.vmap(each(["sub", "lt", "complex"], ours), tuple(axes)))(*args)
    same(mine, jax.jit(jax.vmap(each(["sub", "lt", "complex"], theirs), tuple(axes)))(*args))


# Selection


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("scalar", [False, True])
def test_select_n(n, scalar):
    which = np.int32(n - 1) if scalar else np.array([-5, 0, 1, 2, 4, 9], np.int32)
    cases = [np.arange(6, dtype="f") + 10 * i for i in range(n)]
    same(px.jit(ours.select_n)(which, *cases), jax.jit(theirs.select_n)(which, *cases))


@pytest.mark.parametrize("axes", list(itertools.product((0, 1, None), (0, 1, None), (0, None))))
def test_select_batching(axes):
    if all(a is None for a in axes):
        return
    rng = np.random.default_rng(0)
    for scalar in (False, True):
        args, dims = [], []
        for i, d in enumerate(axes):
            s = () if scalar and i == 0 else (3,)
            d = None if d is None else min(d, len(s))
            x = rng.standard_normal(s if d is None else (*s[:d], 2, *s[d:])).astype("f")
            args.append(x > 0 if i == 0 else x)
            dims.append(d)
        if all(d is None for d in dims):
            continue
        same(
            px.jit(px.vmap(ours.select, tuple(dims)))(*args),
            jax.jit(jax.vmap(theirs.select, tuple(dims)))(*args),
        )
        low, x, high = (a.astype("f") for a in args)
        if np.ndim(x) - (dims[1] is not None) == 1:
            same(
                px.jit(px.vmap(ours.clamp, tuple(dims)))(low, x, high),
                jax.jit(jax.vmap(theirs.clamp, tuple(dims)))(low, x, high),
            )


def test_derivatives_of_select_and_clamp():
    which = np.array([True, False, True])
    a, b, c = (np.array(v, np.float32) for v in ([1, 2, 3], [4, 5, 6], [2, 0, 3]))
    f, g = (lambda a, b, L=L: L.select(which, a, b) for L in (ours, theirs))
    same(px.jvp(f, (a, b), (c, a)), jax.jvp(g, (a, b), (c, a)))
    same(px.vjp(f, a, b)[1](c), jax.vjp(g, a, b)[1](c))
    x = np.array([0, 1, 2, 3, 4, np.nan], np.float32)
    low, high = np.full_like(x, 1), np.full_like(x, 3)
    t = (x + 1, x + 2, x + 3)
    same(px.jvp(ours.clamp, (low, x, high), t), jax.jvp(theirs.clamp, (low, x, high), t))
    same(px.jvp(lambda x: ours.clamp(1.0, x, 3.0), (x,), (x,)),
         jax.jvp(lambda x: theirs.clamp(1.0, x, 3.0), (x,), (x,)))  # fmt: skip


# Conversion

CONVERTED = """bool int4 uint4 int8 uint8 int16 uint16 int32 uint32 float8_e4m3fn float8_e5m2
bfloat16 float16 float32 complex64""".split()


@pytest.mark.parametrize("old", CONVERTED)
def test_conversions(old):
    numbers = [0, -0.0, 1, -1, 0.5, -0.7, 1.5, 2.5, 100, -100, 300, 40000, -70000, 3e9, -3e9, 1e20,
               np.inf, -np.inf, np.nan, 65520, 448, 470]  # fmt: skip
    if old.startswith(("int", "uint")):
        info = ml_dtypes.iinfo(old)
        numbers = [v for v in (0, 1, -1, 5, -8, 7, 100, 300, -70000) if info.min <= v <= info.max]
        numbers += [info.min, info.max]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = np.array(numbers, np.float64).astype(old)
        mine = px.jit(lambda x: [ours.convert_element_type(x, d) for d in CONVERTED])(x)
        reference = jax.jit(lambda x: [theirs.convert_element_type(x, d) for d in CONVERTED])(x)
    for d, a, b in zip(CONVERTED, mine, reference):
        same(a, b, f"{old} -> {d}", 0)


def test_conversion_of_weakly_typed_values():
    same(ours.convert_element_type(1.5, float), theirs.convert_element_type(1.5, float))
    same(ours.convert_element_type(3, "bfloat16"), theirs.convert_element_type(3, "bfloat16"))
    x, z = np.linspace(0, 2, 4).astype("f"), np.array([1 + 2j, 3 - 1j, 0, 1j], np.complex64)
    for d, ct in (("bfloat16", x.astype(ml_dtypes.bfloat16)), ("complex64", z)):
        f, g = (lambda x, L=L, d=d: L.convert_element_type(x, d) for L in (ours, theirs))
        same(px.vjp(f, x)[1](ct), jax.vjp(g, x)[1](ct))


@pytest.mark.parametrize(
    "old, shape, new",
    [
        ("float32", (3,), "int32"), ("float32", (3,), "uint8"), ("uint8", (3, 4), "float32"),
        ("int16", (2, 2), "int32"), ("bfloat16", (2,), "uint16"), ("float32", (), "int16"),
        ("int8", (2, 3), "int4"), ("int4", (3, 2), "int8"), ("bool", (3,), "bool"),
    ],
)  # fmt: skip
def test_bitcasts(old, shape, new):
    x = np.random.default_rng(0).integers(0, 7, shape).astype(old)
    same(ours.bitcast_convert_type(x, new), theirs.bitcast_convert_type(x, new))
    for axis in range(len(shape) + 1):
        y = np.stack([x, x[::-1] if shape else x], axis)
        mine = px.vmap(lambda v: ours.bitcast_convert_type(v, new), axis)(y)
        # The reference does not map the last axis of a conversion to a wider dtype.
        reference = jax.vmap(lambda v: theirs.bitcast_convert_type(v, new))
        same(mine, reference(np.moveaxis(y, axis, 0)))


def test_reduced_precision():
    x = np.array([1.2345, -7.7, 1e-7, 1e20, np.nan], np.float32)
    for bits in ((5, 10), (8, 7), (4, 3), (8, 23), (1, 0)):
        f, g = (lambda x, L=L: L.reduce_precision(x, *bits) for L in (ours, theirs))  # noqa: B023
        same(f(x), g(x), str(bits))
        same(px.jvp(f, (x,), (x,)), jax.jvp(g, (x,), (x,)))
        same(px.vjp(f, x)[1](x), jax.vjp(g, x)[1](x))


# Jaxprs and types


@pytest.mark.parametrize("name", INEXACT + FLOAT)
def test_jaxprs_of_one_operand(name):
    x = np.array(INSIDE, np.float32)
    f, g = getattr(ours, name), getattr(theirs, name)
    same_text(px.make_jaxpr(f)(x), jax.make_jaxpr(g)(x))
    assert px.eval_shape(f, 1.0).weak_type == jax.eval_shape(g, 1.0).weak_type
    if name in ("is_finite", "asinh", "erf", "erfc", "exp2", "log2"):
        return  # other, equally exact derivatives
    same_text(
        px.make_jaxpr(lambda x: px.jvp(f, (x,), (x,)))(x),
        jax.make_jaxpr(lambda x: jax.jvp(g, (x,), (x,)))(x),
    )


@pytest.mark.parametrize("name", REAL2)
def test_jaxprs_of_two_operands(name):
    x = np.array(INSIDE, np.float32)
    f, g = getattr(ours, name), getattr(theirs, name)
    for args in ((x, x), (x, np.float32(1))):
        same_text(px.make_jaxpr(f)(*args), jax.make_jaxpr(g)(*args))
    same_text(
        px.make_jaxpr(lambda x, y: px.jvp(f, (x, y), (y, x)))(x, x),
        jax.make_jaxpr(lambda x, y: jax.jvp(g, (x, y), (y, x)))(x, x),
    )


WRONG = [
    lambda L, x, i: L.sin(i),
    lambda L, x, i: L.neg(i > 0),
    lambda L, x, i: L.add(x, 1),
    lambda L, x, i: L.mul(x, np.ones(4, np.float32)),
    lambda L, x, i: L.bitwise_and(x, x),
    lambda L, x, i: L.lt(x * 1j, x * 1j),
    lambda L, x, i: L.pow(i, i),
    lambda L, x, i: L.pow(x, x.astype("float16")),
    lambda L, x, i: L.integer_pow(i, -1),
    lambda L, x, i: L.select(x, x, x),
    lambda L, x, i: L.select_n(i > 0, x, x, x),
    lambda L, x, i: L.select_n(i, x, i),
    lambda L, x, i: L.select_n(i, x, np.float32(1)),
    lambda L, x, i: L.select_n(i[:2], x, x),
    lambda L, x, i: L.select_n(i),
    lambda L, x, i: L.clamp(0, x, 1),
    lambda L, x, i: L.clamp(x[:2], x, x),
    lambda L, x, i: L.complex(x, x.astype("float16")),
    lambda L, x, i: L.conj(i),
    lambda L, x, i: L.real(x),
    lambda L, x, i: L.abs(i.astype("uint8")),
    lambda L, x, i: L.convert_element_type(x, None),
    lambda L, x, i: L.convert_element_type(x, "S3"),
    lambda L, x, i: L.bitcast_convert_type(x * 1j, "float32"),
    lambda L, x, i: L.bitcast_convert_type(i.astype("int8"), "float32"),
    lambda L, x, i: L.reduce_precision(x, 0, 1),
    lambda L, x, i: L.reduce_precision(x, 1, -1),
    lambda L, x, i: L.reduce_precision(i, 1, 1),
    lambda L, x, i: L.round(x, 2),
]


@pytest.mark.parametrize("wrong", range(len(WRONG)))
def test_errors(wrong):
    x, i = np.ones(3, np.float32), np.ones(3, np.int32)
    with pytest.raises(Exception) as reference:
        WRONG[wrong](theirs, x, i)
    with pytest.raises(reference.type) as mine:
        WRONG[wrong](ours, x, i)
    start = str(reference.value).split(". ")[0].split("subtypes")[0]
    if start.startswith("JAX only supports"):  # the same here, without the name
        assert start.partition(", got ")[2] in str(mine.value)
    else:
        assert str(mine.value).startswith(start[:60])
