"""Reductions over windows against the reference."""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest
from agreement import check, same, values
from jax import lax

import primax_core as px
from primax_core.lax import arithmetic, bitwise, reducing, windows

F = np.float32
BF16 = ml_dtypes.bfloat16
INF = float("inf")
KNOWN = {"add": 0.0, "max": -INF, "min": INF}


def both(init, name, *args, **kwargs):
    """``reduce_window`` of both libraries with bound parameters."""
    ours = getattr(arithmetic, name, None) or getattr(bitwise, name)
    theirs = getattr(lax, name)
    return (
        lambda x: windows.reduce_window(x, init, ours, *args, **kwargs),
        lambda x: lax.reduce_window(x, init, theirs, *args, **kwargs),
    )


WINDOWS = [
    ((4, 6), ((2, 3),), {}),
    ((4, 6), ((2, 3), (1, 2), "SAME"), {}),
    ((4, 6), ((3, 2), (2, 2), "SAME_LOWER"), {}),
    ((7,), ((3,), (2,), [(2, 1)]), {}),
    ((7,), ((2,), (1,), [(-1, -2)]), {}),
    ((2,), ((3,),), {}),
    ((), ((),), {}),
]
DILATED = [
    ((4, 6), ((2, 3), (1, 2), [(0, 1), (1, 1)], (1, 2), (2, 1)), {}),
    ((4, 6), ((2, 3), (1, 2), "SAME", (1, 2), (2, 2)), {}),
]


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("shape, args, options", WINDOWS)
def test_known(name, shape, args, options):
    # The reference fails for negative padding in the transpose of a maximum, and crashes
    # without axes.
    backward = name == "add" or (args[-1] != [(-1, -2)] and shape != ())
    check(*both(KNOWN[name], name, *args, **options), values(shape, F), backward=backward)


def test_reverse_mode_with_negative_padding():
    x, ct = values((7,), F), values((3,), F, 1)
    ours, _ = both(-INF, "max", (2,), (1,), [(-1, -2)])
    reference = jax.vjp(lambda x: lax.reduce_window(x[1:-2], -INF, lax.max, (2,)), x)[1](ct)
    same(px.vjp(ours, x)[1](ct), reference)


def test_reverse_mode_without_axes():
    ours, _ = both(-INF, "max", ())
    assert float(px.vjp(ours, F(2))[1](F(3))[0]) == 3


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("shape, args, options", DILATED)
def test_dilated(name, shape, args, options):
    check(*both(KNOWN[name], name, *args, **options), values(shape, F), backward=name == "add")


def test_reverse_mode_of_dilated_extrema():
    """The reference has no rule; compare with an equivalent window without dilation."""
    x = values((9,), F)
    dilated, _ = both(-INF, "max", (2,), (1,), [(1, 0)], None, (2,))
    ct = values((8,), F, 3)

    def plain(x):
        padded = lax.pad(x, -np.inf, [(1, 0, 0)])
        return lax.max(padded[:-2], padded[2:])

    same(px.vjp(dilated, x)[1](ct), jax.vjp(plain, x)[1](ct))
    based, _ = both(INF, "min", (3,), (2,), [(1, 2)], (2,))
    wide = lax.pad(x, np.inf, [(0, 0, 1)])
    actual = px.vjp(based, x)[1](ct := values(px.eval_shape(based, x).shape, F, 3))
    reference = jax.vjp(
        lambda w: lax.reduce_window(w, np.inf, lax.min, (3,), (2,), [(1, 2)]), wide
    )[1](ct)
    same(actual[0], reference[0][::2])


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_and_nans(name):
    x = np.array([1, 1, 3, 3, np.nan, 2, 2, -INF, -INF, -INF, 5, INF, INF], F)
    t = np.arange(1, 14).astype(F)
    for args in [((3,), (1,), [(1, 1)]), ((2,),), ((3,), (3,), [(0, 2)])]:
        ours, theirs = both(KNOWN[name], name, *args)
        same(ours(x), theirs(x))
        same(px.jvp(ours, (x,), (t,)), jax.jvp(theirs, (x,), (t,)))
        ct = values(theirs(x).shape, F)
        same(px.vjp(ours, x)[1](ct), jax.vjp(theirs, x)[1](ct))


@pytest.mark.parametrize("dtype", [BF16, np.float16, np.int8, np.uint8, np.int32, np.complex64])
@pytest.mark.parametrize("name", KNOWN)
def test_dtypes(name, dtype):
    neutral = {"add": lambda d: 0, "max": reducing.least, "min": reducing.greatest}[name]
    init = np.asarray(neutral(np.dtype(dtype)), dtype)[()]
    plain = dtype is not np.complex64 or name == "add"
    check(*both(init, name, (2,)), values((6,), dtype), batch=False, diff=plain)


def test_booleans_and_generic_functions():
    x = values((4, 6), np.bool_)
    for name, init in (("max", False), ("min", True), ("bitwise_or", False)):
        check(*both(init, name, (2, 3)), x, batch=False)
    x = values((4, 6), F)
    for name, init in (("mul", 1.0), ("add", 1.0), ("max", 0.0)):
        ours, theirs = both(init, name, (2, 3), (1, 2), "SAME")
        check(ours, theirs, x, backward=False)
        ct = values((4, 3), F)
        # The reference has no reverse derivative of these, so its forward derivative is used.
        basis = np.eye(24, dtype=F).reshape(24, 4, 6)
        jacobian = np.asarray(jax.vmap(lambda t, f=theirs: jax.jvp(f, (x,), (t,))[1])(basis))
        jacobian = jacobian.reshape(24, -1)
        (actual,) = px.vjp(ours, x)[1](ct)
        np.testing.assert_allclose(
            np.asarray(actual).reshape(-1), jacobian @ ct.reshape(-1), rtol=1e-5, atol=1e-5
        )


def test_several_operands():
    def run(module, window, x):
        out = window.reduce_window(
            {"a": x, "b": x}, {"a": 0.0, "b": -INF},
            lambda p, q: {"a": module.add(p["a"], q["a"]), "b": module.max(p["b"], q["b"])},
            (2, 3),
        )  # fmt: skip
        return out["a"], out["b"]

    check(lambda x: run(arithmetic, windows, x), lambda x: run(lax, lax, x), values((4, 6), F),
          backward=False)  # fmt: skip


def test_traced_and_mapped_initial_values():
    def run(module, window, x, y):
        return window.reduce_window(x, y, module.mul, (2,))

    x, y = values((5,), F), values((), F, 1)
    ours, theirs = (lambda x, y: run(arithmetic, windows, x, y)), (lambda x, y: run(lax, lax, x, y))
    check(ours, theirs, x, y, diff=False, batch=False)
    ys = values((3,), F, 2)
    actual = px.vmap(ours, (None, 0))(x, ys)
    same(np.asarray(actual), np.stack([theirs(x, y) for y in ys]))
    tangent = px.jvp(lambda y: ours(x, y), (y,), (F(1),))[1]
    np.testing.assert_allclose(tangent, x[:-1] * x[1:], rtol=1e-5)


def test_weak_types_and_shapes():
    for name, init in (("add", 0.0), ("mul", 1.0)):
        ours, theirs = both(init, name, ())
        same(px.jit(ours)(1.0), jax.jit(theirs)(1.0))
    for args in itertools.product([(4, 7)], [(2, 3)], [(1, 2)], [((0, 1), (0, 0))], [None, (2, 1)],
                                  [None, (1, 2)]):  # fmt: skip
        assert windows.reduce_window_shape_tuple(*args) == lax.reduce_window_shape_tuple(*args)


@pytest.mark.parametrize(
    "x, init, args",
    [
        ((4, 6), 0.0, ((2,),)),
        ((4, 6), 0.0, ((2, 3), (1,))),
        ((4, 6), 0.0, ((2, 3), (0, 1))),
        ((4, 6), 0.0, ((0, 3),)),
        ((4, 6), 0.0, ((2, 3), None, "foo")),
        ((4, 6), 0.0, ((2, 3), None, "VALID", (0, 1))),
        ((4, 6), 0.0, ((2, 3), None, "VALID", None, (0, 1))),
        ((4, 6), np.zeros(2, F), ((2, 3),)),
        ((4, 6), np.int32(3), ((2, 3),)),
    ],
)
def test_errors(x, init, args):
    x = values(x, F)
    results = []
    for fun in both(init, "add", *args):
        with pytest.raises(Exception) as e:
            fun(x)
        results.append((e.type, str(e.value).replace("dtype('float32')", "'float32'")
                      .replace("dtype('int32')", "'int32'")))  # fmt: skip
    assert results[0] == results[1]


def test_additional_errors():
    x = values((4,), F)
    add = arithmetic.add
    with pytest.raises(ValueError, match="at least one operand"):
        windows.reduce_window((), (), lambda p, q: p, (2,))
    with pytest.raises(ValueError, match="same tree structure"):
        windows.reduce_window([x], 0.0, add, (2,))
    with pytest.raises(ValueError, match="pair for each of the 1 axes"):
        windows.reduce_window(x, 0.0, add, (2,), (1,), [(1, 1), (1, 1)])
    with pytest.raises(TypeError, match="dtypes"):
        windows.reduce_window(x, 0.0, lambda p, q: p > q, (2,))
    with pytest.raises(ValueError, match="structure"):
        windows.reduce_window(x, 0.0, lambda p, q: (p, q), (2,))
    with pytest.raises(TypeError, match="closes over tracers"):
        px.jit(lambda y: windows.reduce_window(x, 0.0, lambda p, q: add(p, y), (2,)))(F(1))
