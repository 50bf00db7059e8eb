"""Arrays in layouts other than row-major, and computations with them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.layout import Format, Layout, explicit_layout, with_layout_constraint

HERE = px.device_put(0.0).sharding
COLUMNS = Format(Layout((1, 0)), HERE)
FLAT = Format(Layout((0,)), HERE)
ROWS = Format(Layout((0, 1)), HERE)
B = np.ones((3, 4), np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def y():
    return px.device_put(X, COLUMNS)


def lies(array, *order):
    return array.format.layout.major_to_minor == order


def test_formats_of_arrays(y):
    assert lies(y, 1, 0) and lies(px.device_put(X), 0, 1)
    assert y.format.sharding is HERE and y.committed
    assert px.device_put(y, COLUMNS) is not None and lies(px.device_put(y, ROWS), 0, 1)
    assert repr(y.format).startswith("Format(layout=Layout(major_to_minor=(1, 0), tiling=()")


READ = {
    "asarray": np.asarray,
    "tolist": lambda y: np.array(y.tolist()),
    "iterate": lambda y: np.stack([np.asarray(row) for row in y]),
    "dlpack": np.from_dlpack,
    "copy": lambda y: np.asarray(copy.copy(y)),
    "deepcopy": lambda y: np.asarray(copy.deepcopy(y)),
    "pickle": lambda y: np.asarray(pickle.loads(pickle.dumps(y))),
    "clone": lambda y: np.asarray(y.clone()),
    "device_get": px.device_get,
    "device_put": lambda y: np.asarray(px.device_put(y, px.devices()[0])),
    "to host memory": lambda y: np.asarray(px.device_put(y, px.memory.Space.Host)),
    "repr": lambda y: np.array(eval(repr(y), {"Array": lambda v, dtype: v, "float32": 0})),
    "addressable": lambda y: np.asarray(y.addressable_shards[0].data),
    "retyped": lambda y: np.asarray(lax.stop_gradient(y)),
}


@pytest.mark.parametrize("how", READ)
def test_values_are_read_right(how, y):
    np.testing.assert_array_equal(READ[how](y), X)


COMPUTE = {
    "operator": lambda y: y + 1,
    "eager": lax.sin,
    "jit": px.jit(lambda y: lax.dot(y, lax.transpose(y, (1, 0)))),
    "reshape": lambda y: lax.reshape(y, (3, 2)),
    "flat": lambda y: lax.reshape(y, (6,)),
    "slice": lambda y: lax.slice(y, (0, 1), (2, 3)),
    "two layouts": lambda y: lax.mul(y, X),
    "grad": px.grad(lambda y: lax.reduce_sum(y * y, (0, 1))),
    "vmap": px.vmap(lambda r: r * lax.reduce_sum(r, (0,))),
    "scan": lambda y: lax.scan(lambda c, r: (c + r, c), np.zeros(3, np.float32), y)[1],
    "callback": lambda y: px.pure_callback(lambda v: np.asarray(v) * 2, y, y),
    "jitted callback": px.jit(lambda y: px.pure_callback(lambda v: np.asarray(v) * 2, y, y)),
    "closed over": lambda y: px.jit(lambda x: x * y)(X),
    "keyword": lambda y: px.jit(lambda *, y: y * 2)(y=y),
    "tree": lambda y: px.jit(lambda t: t["a"] + t["b"])({"a": y, "b": X}),
    "donated": lambda y: px.jit(lambda y: y * 2, donate_argnums=0)(
        px.device_put(y, COLUMNS, may_alias=False)
    ),
    "donated transposed": lambda y: px.jit(
        lambda y: lax.rev(y, (1,)), donate_argnums=0
    )(px.device_put(y, COLUMNS, may_alias=False)),
    "checkpoint": px.grad(px.checkpoint(lambda y: lax.reduce_sum(lax.sin(y), (0, 1)))),
    "gather": lambda y: lax.gather(
        y, np.array([[1, 2], [0, 1]]), lax.GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1)
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("name", COMPUTE)
def test_computing(name, y):
    actual, expected = COMPUTE[name](y), COMPUTE[name](px.device_put(X))
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(y, X)


def test_large_constants_in_other_layouts():
    big = np.arange(6000, dtype=np.float32).reshape(60, 100)
    y = px.device_put(big, COLUMNS)
    np.testing.assert_array_equal(px.jit(lambda x: x + y)(big), big * 2)


def test_results_of_jit():
    f = px.jit(
        lambda x: (x * 2, {"a": x[0] if False else lax.sin(x)}), out_shardings=(COLUMNS, None)
    )
    a, rest = f(X)
    assert lies(a, 1, 0) and lies(rest["a"], 0, 1)
    np.testing.assert_array_equal(a, X * 2)
    np.testing.assert_array_equal(a + rest["a"], X * 2 + np.asarray(lax.sin(X)))


def test_arguments_of_jit(y):
    f = px.jit(lambda x: x * 2, in_shardings=COLUMNS)
    np.testing.assert_array_equal(f(X), X * 2)
    np.testing.assert_array_equal(f(y), X * 2)
    np.testing.assert_array_equal(f(lax.add(X, X)), X * 4)
    with pytest.raises(ValueError, match="Layout passed to jit does not match"):
        f(px.device_put(X, HERE))
    with pytest.raises(ValueError, match="does not match"):
        px.jit(lambda x: x, in_shardings=ROWS)(y)


def test_layouts_of_some_arguments(y):
    f = px.jit(lambda x, t, *, k: x + t["a"] * k, in_shardings=(None, {"a": COLUMNS}))
    np.testing.assert_array_equal(f(X, {"a": y}, k=2.0), X * 3)
    with pytest.raises(ValueError, match="in_shardings"):
        px.jit(lambda x, y: x, in_shardings=(None, COLUMNS, None))(X, X)


def test_the_compiler_chooses():
    auto = Format(Layout.AUTO)
    f = px.jit(lambda a: lax.dot(lax.rev(a, (0,)), B), in_shardings=auto, out_shardings=auto)
    compiled = f.lower(X).compile()
    ((fmt,), _) = compiled.input_formats
    assert isinstance(fmt.layout, Layout) and isinstance(compiled.output_formats.layout, Layout)
    np.testing.assert_array_equal(compiled(X), X[::-1] @ B)
    np.testing.assert_array_equal(f(X), X[::-1] @ B)
    np.testing.assert_array_equal(f(px.device_put(X, COLUMNS)), X[::-1] @ B)


def test_ahead_of_time(y):
    compiled = px.jit(lambda x: x * 2, in_shardings=COLUMNS).lower(X).compile()
    assert compiled.input_formats == ((COLUMNS,), {})
    np.testing.assert_array_equal(compiled(y), X * 2)
    np.testing.assert_array_equal(compiled(X), X * 2)
    with pytest.raises(ValueError, match=r"1 mismatches:\nArgument 'x' with shape float32\[2,3\]"):
        compiled(px.device_put(X, HERE))
    own = px.jit(lambda x: x * 2).lower(y).compile()
    assert own.input_formats == ((COLUMNS,), {})
    np.testing.assert_array_equal(own(y), X * 2)
    struct = px.ShapeDtypeStruct((2, 3), np.float32, sharding=COLUMNS)
    assert struct.format == COLUMNS and struct.sharding is HERE
    assert struct.update(shape=(3, 2)).format == COLUMNS
    assert px.jit(lambda x: x).lower(struct).compile().input_formats == ((COLUMNS,), {})


def test_constraints():
    f = px.jit(lambda x: with_layout_constraint(x * 2, Layout((1, 0))) + 1)
    np.testing.assert_array_equal(f(X), X * 2 + 1)
    assert "@LayoutConstraint" in f.lower(X).as_text()
    assert lies(with_layout_constraint(X, Layout((1, 0))), 1, 0)
    tree = px.jit(lambda t: with_layout_constraint(t, {"a": Layout((1, 0)), "b": Layout((0,))}))
    out = tree({"a": X, "b": X[0]})
    np.testing.assert_array_equal(out["a"], X)
    text = str(px.make_jaxpr(px.vmap(lambda x: with_layout_constraint(x, Layout((1, 0)))))(X[None]))
    assert "major_to_minor=(0, 2, 1)" in text
    g = px.grad(lambda x: lax.reduce_sum(with_layout_constraint(x, Layout((1, 0))) * x, (0, 1)))
    np.testing.assert_array_equal(g(X), X * 2)


def test_constraints_of_formats():
    assert lies(lax.with_sharding_constraint(X, COLUMNS), 1, 0)
    pair = lax.with_sharding_constraint({"a": X, "b": X}, {"a": COLUMNS, "b": HERE})
    assert lies(pair["a"], 1, 0) and lies(pair["b"], 0, 1)
    for open_format in (Format(Layout.AUTO, HERE), Format(None, HERE)):
        assert lies(lax.with_sharding_constraint(X, open_format), 0, 1)
    f = px.jit(lambda x: lax.with_sharding_constraint(x * 2, COLUMNS) + 1)
    np.testing.assert_array_equal(f(X), X * 2 + 1)
    assert "@LayoutConstraint" in f.lower(X).as_text()
    with pytest.raises(ValueError, match="got sharding None which is not allowed"):
        lax.with_sharding_constraint(X, Format())
    with pytest.raises(ValueError, match="incompatible with its layout annotation"):
        lax.with_sharding_constraint(X, Format(Layout((0,)), HERE))


def test_explicit_layout():
    f = explicit_layout(lambda x: x * 2, in_layouts=Layout((1, 0)))
    np.testing.assert_array_equal(f(X), X * 2)
    assert "layout_constraint" in str(px.make_jaxpr(f)(X))
    g = explicit_layout(in_layouts=(Layout((1, 0)), Layout((0,))))(lambda x, v: x + v)
    np.testing.assert_array_equal(px.jit(g)(X, X[0]), X + X[0])


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: with_layout_constraint(X, Layout((1, 0, 2))), ValueError, "incompatible with its"),
        (lambda: with_layout_constraint(X, 1), TypeError, "takes layouts"),
        (lambda: px.device_put(X, Format(Layout((1, 1)), HERE)), ValueError, "each axis"),
        (lambda: px.device_put(X, Format(Layout((0, 1, 2)), HERE)), ValueError, "rank"),
        (
            lambda: px.jit(lambda x: x, out_shardings=Format(Layout((0,)), HERE))(X),
            ValueError,
            "rank",
        ),
        (lambda: Format((1, 0), HERE), TypeError, "layout argument"),
        (lambda: Format(Layout((1, 0)), 3), TypeError, "sharding argument"),
        (lambda: Format(Layout((1, 0))), ValueError, "Sharding has to be concrete"),
    ],
)
def test_bad_layouts(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_equality():
    assert Layout((1, 0)) == Layout([1, 0], ()) and hash(Layout((1, 0))) == hash(Layout((1, 0), ()))
    assert Layout((1, 0)) != Layout((0, 1)) and Format() == Format(None, None) != COLUMNS
    assert Layout((1, 0)).update(major_to_minor=(0, 1)) == Layout((0, 1))
    assert repr(Layout.AUTO) == "AutoLayout"


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (0, 3)])
def test_other_ranks(shape):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    order = tuple(reversed(range(len(shape))))
    y = px.device_put(x, Format(Layout(order), HERE))
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(y + 1, x + 1)


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "int8", "complex64", "float16"])
def test_other_dtypes(dtype):
    x = (X > 2).astype(px.dtypes.canonicalize_dtype(getattr(px.dtypes, dtype, dtype)))
    y = px.device_put(x, COLUMNS)
    assert lies(y, 1, 0)
    np.testing.assert_array_equal(np.asarray(y), x)
    np.testing.assert_array_equal(np.asarray(lax.rev(y, (0,))), x[::-1])
