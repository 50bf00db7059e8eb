"""``pure_callback``: Python functions without side effects at run time."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.errors import JaxRuntimeError

S = px.ShapeDtypeStruct
F2 = S((2,), np.float32)
X = np.array([0.5, 2.0], np.float32)


def calling(function, result=F2, **options):
    """A function that calls ``function`` and its compiled form."""

    def f(*args):
        return px.pure_callback(function, result, *args, **options)

    return f, px.jit(f)


def test_computes_eagerly_and_compiled():
    for f in calling(np.sin):
        np.testing.assert_array_equal(f(X), np.sin(X))


def test_arguments_are_arrays_that_outlive_the_call():
    received = []

    def keep(x):
        received.append(x)
        return np.asarray(x) + 1

    for f in calling(keep):
        f(X).block_until_ready()
    assert all(isinstance(x, px.Array) for x in received)
    junk = [px.jit(lambda x: x * 3)(np.full(2, i, np.float32)) for i in range(50)]
    assert len(junk) == 50
    for x in received:
        np.testing.assert_array_equal(x, X)


def test_trees_and_keywords():
    def swap(pair, *, scale):
        return {"b": np.asarray(pair[0]) * np.asarray(scale), "a": np.asarray(pair[1])}

    result = {"a": S((), np.int32), "b": F2}
    f = px.jit(lambda x, n, s: px.pure_callback(swap, result, (x, n), scale=s))
    out = f(X, np.int32(7), np.float32(2))
    assert int(out["a"]) == 7
    np.testing.assert_array_equal(out["b"], X * 2)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"]
)
def test_dtypes(dtype):
    dtype = px.dtypes.canonicalize_dtype(getattr(px.dtypes, dtype, dtype))
    x = np.arange(3).astype(dtype)
    seen = []

    def same(x):
        seen.append(x.dtype)
        return x

    for f in calling(same, S((3,), dtype)):
        out = f(x)
        assert out.dtype == dtype
        np.testing.assert_array_equal(np.asarray(out).astype(complex), x.astype(complex))
    assert seen == [dtype, dtype]


def test_64_bit_dtypes_if_enabled():
    with px.enable_x64(True):
        f = px.jit(lambda x: px.pure_callback(np.square, S((), np.float64), x))
        assert f(np.float64(1e-200)).dtype == np.float64
        # The context is not that of XLA's thread, but the callback restores it.
        g = px.jit(lambda x: px.pure_callback(lambda x: lax.sin(x), S((), np.float64), x))
        assert float(g(np.float64(0.5))) == np.sin(0.5)
    with pytest.raises(ValueError, match="cannot specify 64-bit types"):
        px.pure_callback(np.square, np.zeros((), np.float64), X[0])


def test_empty_and_rank_0():
    for f in calling(lambda x: np.asarray(x).sum(dtype=np.float32), S((), np.float32)):
        assert float(f(np.zeros((0, 3), np.float32))) == 0.0
    for f in calling(lambda: np.zeros((0, 2), np.int32), S((0, 2), np.int32)):
        assert f().shape == (0, 2)


def test_python_numbers_take_the_dtype():
    for f in calling(lambda x: 1.5, S((), np.float32)):
        assert f(X).dtype == np.float32
    for f in calling(lambda x: 3, S((), np.int8)):
        assert int(f(X)) == 3
    for f in calling(lambda x: np.ones(2), F2):  # float64, which is disabled
        np.testing.assert_array_equal(f(X), [1, 1])


WRONG = {
    "shape": (lambda x: np.ones(3, np.float32), "shape (3,) as result 0, but result_shape_dtypes "),
    "rank": (lambda x: np.ones((2, 1), np.float32), "says f32[2]"),
    "dtype": (lambda x: np.ones(2, np.int32), "returned an array of dtype int32 as result 0"),
    "number": (lambda x: 1, "shape () as result 0"),
    "count": (lambda x: (x, x), "returned the structure PyTreeDef((*, *))"),
    "none": (lambda x: None, "returned the structure PyTreeDef(None)"),
    "text": (lambda x: "ab", "shape () as result 0"),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_results_never_reach_xla(kind, compiled):
    function, text = WRONG[kind]
    f = calling(function)[compiled]
    with pytest.raises(JaxRuntimeError) as e:
        f(X).block_until_ready()
    assert text in str(e.value)
    assert isinstance(e.value.__cause__, (TypeError, ValueError))
    assert "test_pure_callback.py" in str(e.value)


def fails(x):
    raise KeyError("the key")


@pytest.mark.parametrize(
    "read", [np.asarray, lambda x: x.block_until_ready(), lambda x: x.tolist()]
)
def test_errors_have_the_callbacks_traceback(read):
    f = px.jit(lambda x: px.pure_callback(fails, F2, x) + 1)
    with pytest.raises(JaxRuntimeError, match="KeyError: 'the key'") as e:
        read(f(X))
    cause = e.value.__cause__
    assert isinstance(cause, KeyError)
    names = []
    entry = cause.__traceback__
    while entry is not None:
        names.append(entry.tb_frame.f_code.co_name)
        entry = entry.tb_next
    assert names == ["fails"]
    assert "This was raised in the pure_callback fails at " in str(e.value)
    assert "called at " in str(e.value)


def test_a_failure_reaches_dependent_calls():
    f = px.jit(lambda x: px.pure_callback(fails, F2, x))
    y = None
    with pytest.raises(JaxRuntimeError, match="the key"):
        y = f(X)
        z = lax.sin(y)
        np.asarray(z)


def test_eager_failure():
    with pytest.raises(JaxRuntimeError, match="the key") as e:
        px.pure_callback(fails, F2, X)
    assert isinstance(e.value.__cause__, KeyError)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_exits_are_errors_too(error):
    def leave(x):
        raise error

    with pytest.raises(JaxRuntimeError) as e:
        px.jit(lambda x: px.pure_callback(leave, F2, x))(X).block_until_ready()
    assert e.value.__cause__ is error


def test_unused_calls_are_dropped():
    calls = []
    f = px.jit(lambda x: (px.pure_callback(lambda x: calls.append(0) or x, F2, x), x + 1)[1])
    f(X).block_until_ready()
    assert not calls


# vmap


def shapes_of(method, size=3):
    seen = []

    def add(x, y):
        seen.append((x.shape, y.shape))
        return np.asarray(x) + np.asarray(y)

    def f(x, y):
        return px.pure_callback(add, F2, x, y, vmap_method=method)

    xs = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
    return seen, f, xs


@pytest.mark.parametrize(
    "method, expected",
    [
        ("sequential", [((2,), (2,))] * 3),
        ("sequential_unrolled", [((2,), (2,))] * 3),
        ("expand_dims", [((3, 2), (1, 2))]),
        ("broadcast_all", [((3, 2), (3, 2))]),
        ("legacy_vectorized", [((3, 2), (2,))]),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_vmap_methods(method, expected, compiled):
    seen, f, xs = shapes_of(method)
    g = px.vmap(f, in_axes=(0, None))
    out = (px.jit(g) if compiled else g)(xs, X)
    np.testing.assert_array_equal(out, xs + X)
    assert seen == expected


def test_vmap_of_other_axes_and_twice():
    seen, f, xs = shapes_of("sequential")
    out = px.vmap(f, in_axes=(1, None), out_axes=1)(xs.T, X)
    np.testing.assert_array_equal(out, (xs + X).T)
    seen.clear()
    both = px.vmap(px.vmap(f, in_axes=(0, None)), in_axes=(None, 0))(xs, np.stack([X, X + 1]))
    np.testing.assert_array_equal(both, xs[None] + np.stack([X, X + 1])[:, None])
    assert len(seen) == 6


def test_vmap_of_an_empty_batch():
    seen, f, _ = shapes_of("sequential")
    out = px.vmap(f, in_axes=(0, None))(np.zeros((0, 2), np.float32), X)
    assert out.shape == (0, 2) and out.dtype == np.float32
    assert not seen


def test_vmap_needs_a_method():
    _, f, xs = shapes_of(None)
    with pytest.raises(NotImplementedError, match="vmap_method is one of"):
        px.vmap(f, in_axes=(0, None))(xs, X)
    with pytest.raises(ValueError, match="allowed methods"):
        px.pure_callback(np.sin, F2, X, vmap_method="loop")


# Derivatives


def test_no_derivative_without_a_rule():
    f, _ = calling(np.sin)
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        px.jvp(f, (X,), (X,))
    with pytest.raises(ValueError, match="custom_jvp"):
        px.grad(lambda x: f(x)[0] if False else lax.reduce_sum(f(x), (0,)))(X)


def test_derivative_by_a_custom_rule():
    @px.custom_jvp
    def sin(x):
        return px.pure_callback(np.sin, S((), np.float32), x, vmap_method="sequential")

    @sin.defjvp
    def _jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        cos = px.pure_callback(np.cos, S((), np.float32), x, vmap_method="sequential")
        return sin(x), cos * t

    for g in (px.grad(sin), px.jit(px.grad(sin))):
        np.testing.assert_allclose(g(np.float32(0.5)), np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(px.jit(px.vmap(px.grad(sin)))(X), np.cos(X), rtol=1e-6)


# In loops, branches and nested calls


def test_within_loops_and_branches():
    def f(x):
        def body(c, _):
            return px.pure_callback(lambda c: np.asarray(c) * 2, S((), np.float32), c), c

        c, ys = lax.scan(body, x, None, length=3)
        n = lax.while_loop(
            lambda n: px.pure_callback(lambda n: np.asarray(n) < 5, S((), np.bool_), n),
            lambda n: n + 1,
            0,
        )
        return (
            c,
            ys,
            lax.cond(c > 0, lambda c: px.pure_callback(np.negative, c, c), lambda c: c, c),
            n,
        )

    for g in (f, px.jit(f)):
        c, ys, d, n = g(np.float32(1.5))
        assert (float(c), ys.tolist(), float(d), int(n)) == (12.0, [1.5, 3.0, 6.0], -12.0, 5)


def test_jaxprs_print_their_callbacks():
    text = str(
        px.make_jaxpr(lambda x: px.pure_callback(np.sin, F2, x, vmap_method="sequential"))(X)
    )
    assert "pure_callback[" in text and "vmap_method=sequential" in text and "ufunc 'sin'" in text


def test_bad_arguments():
    with pytest.raises(TypeError, match="callable"):
        px.pure_callback(3, F2, X)
    with pytest.raises(TypeError, match="result_shape_dtypes must be a pytree"):
        px.pure_callback(np.sin, 3, X)
    with pytest.raises(TypeError, match="sharding"):
        px.pure_callback(np.sin, F2, X, sharding="cpu")


def test_found_in_the_disk_cache_by_the_module_alone(monkeypatch):
    """The functions are those of the process, so each one lowers the program."""
    from primax_core._lower import compile

    modules, links = [], []
    monkeypatch.setattr(compile.disk, "executable_location", lambda *a: modules.append(a))
    monkeypatch.setattr(compile.disk, "keep_link", lambda *a: links.append(a))
    px.jit(lambda x: px.pure_callback(np.sin, F2, x) * 17)(X)
    assert modules and not links


@pytest.mark.parametrize("compiled", [False, True])
def test_a_list_is_accepted_for_a_tuple(compiled):
    f = calling(lambda x: [np.asarray(x), np.asarray(x) + 1], (F2, F2))[compiled]
    a, b = f(X)
    np.testing.assert_array_equal(b, a + 1)
    f = calling(lambda x: (np.asarray(x),), [F2])[compiled]
    assert isinstance(f(X), list)


@pytest.mark.parametrize("compiled", [False, True])
def test_arguments_have_strong_types(compiled):
    weak = []
    f = calling(lambda x: weak.append(x.weak_type) or np.float32(0), S((), np.float32))[compiled]
    px.block_until_ready(f(1.5))
    assert weak == [False]


INDEX = lax.ScatterDimensionNumbers((), (0,), (0,))
ELEMENTWISE = {
    "reduce": lambda f, x: lax.reduce(x, np.float32(0), f, (0,)),
    "reduce_window": lambda f, x: lax.reduce_window(x, np.float32(0), f, (2,), (1,), "VALID"),
    "scatter_apply": lambda f, x: lax.scatter_apply(
        x, np.array([[1]]), lambda a: f(a, a), INDEX, update_shape=(1,)
    ),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_not_for_single_elements(name):
    """XLA would abort the process."""

    def called(a, b):
        return px.pure_callback(lambda a, b: np.asarray(a + b), S((), np.float32), a, b)

    def shown(a, b):
        px.debug.print("{}", a)
        return a + b

    def sorted_(a, b):
        pair = lax.concatenate([lax.reshape(a, (1,)), lax.reshape(b, (1,))], 0)
        return px.jit(lambda pair: lax.reduce_max(lax.sort(pair), (0,)))(pair)

    for f, what in ((called, "pure_callback"), (shown, "debug_callback"), (sorted_, "sort")):
        with pytest.raises(NotImplementedError, match=f"given to {name} .* cannot do {what} there"):
            ELEMENTWISE[name](f, X)
    results = ELEMENTWISE[name](lambda a, b: px.jit(lambda a, b: a + b)(a, b), X)
    assert np.isfinite(np.asarray(results)).all()
