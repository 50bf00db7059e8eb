"""Native functions that numba compiles: values, transformations, errors."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest
from ffi_library import run

from primax_core import (
    ShapeDtypeStruct as S,
    checkpoint,
    custom_vjp,
    enable_x64,
    export,
    grad,
    jit,
    lax,
    make_jaxpr,
    vmap,
)
from primax_core.errors import JaxRuntimeError
from primax_core.extend import Primitive, ShapedArray, abstract, lower
from primax_ffi import Signature, ffi_lowering, native_function

pytest.importorskip("numba", reason="numba is not installed: pip install 'primax-ffi[numba]'")

F32 = np.dtype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROW = np.float32([1, 2, 3])


@native_function("f32[b n], f32[n]; by: f32, shift: i32 -> f32[b n]")
def scaled(x, w, y, shift=0, by=2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[j] * by + shift


@native_function("f32[... n] -> f32[... n], f32[...]", boundscheck=True)
def sums(x, partial, total):
    """Partial sums, and the sum, of numbers up to 100."""
    s = np.float32(0)
    for i in range(x.shape[0]):
        if x[i] > 100:
            raise ValueError("large")
        if x[i] < -100:
            raise ValueError(f"small at {i}")
        if x[i] == -1:
            s += 1 / (x[i] + 1)
        if x[i] == -2:
            s += x[i + 100]
        s += x[i]
        partial[i] = s
    total[()] = s


@native_function("f32[n]; by: f32 -> f32[n], aliases {0: 0}")
def multiplied(x, y, by):
    for i in range(y.shape[0]):
        y[i] *= by


def rows(x: Any) -> list[Any]:
    return np.asarray(x).tolist()


def test_eagerly_and_in_compiled_functions():
    expected = (X * ROW * 2).tolist()
    assert rows(scaled(X, ROW)) == rows(jit(scaled)(X, ROW)) == expected
    assert rows(jit(lambda x: scaled(x, ROW, by=3.0, shift=1) + 1)(X)) == (X * ROW * 3 + 2).tolist()
    outs = sums(X)
    assert type(outs) is list
    assert rows(outs[0]) == np.cumsum(X, 1).tolist() and rows(outs[1]) == X.sum(1).tolist()
    assert rows(sums(np.zeros((0, 3), F32))[1]) == [] and rows(sums(np.zeros(0, F32))[1]) == 0


def test_its_looks():
    assert repr(sums).endswith("sums: float32[... n] -> [float32[... n], float32[...]]>")
    assert str(inspect.signature(scaled)) == "(x, w, /, *, shift=0, by=2)"
    assert sums.__doc__ and sums.__name__ == "sums" and sums.name.endswith("_native_function.sums")
    text = str(make_jaxpr(lambda x: scaled(x, ROW))(X))
    assert f"target_name={scaled.name}" in text and "('by', np.float32(2.0))" in text


@pytest.mark.parametrize(
    "dtype",
    ["f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "c64", "c128"],
)
def test_dtypes(dtype):
    def reverse(x, y):
        for i in range(x.shape[0]):
            y[x.shape[0] - 1 - i] = x[i]

    with enable_x64(True):
        call = native_function(f"{dtype}[n] -> {dtype}[n]")(reverse)
        own = call.signature.operands[0].dtype
        x = np.array([1, 0, 200 if own.kind == "u" else 100, 3 - 4j if own.kind == "c" else 1])
        x = x.astype(own)
        out = jit(call)(x)
        assert out.dtype == own and rows(out) == x[::-1].tolist()


def test_attributes_of_every_kind():
    kinds = {
        "b": "bool", "i1": "i8", "i8": "i64", "u8": "u64", "f4": "f32", "f8": "f64",
        "axes": "i64[]", "weights": "f32[]",
    }  # fmt: skip

    @native_function(Signature(["f64[n]"], "f64[9]", kinds))
    def attributes(x, y, weights, i8, u8, f8, f4, i1, b, axes):
        y[0], y[1], y[2], y[3], y[4], y[5] = b, i1, i8, u8, f4, f8
        y[6], y[7], y[8] = axes.shape[0], axes[-1], weights.sum()

    values = {"b": True, "i1": -3, "i8": -(2**40), "u8": 2**41, "f4": 0.5, "f8": 0.1}
    with enable_x64(True):
        call = jit(lambda x: attributes(x, axes=[5, 7], weights=np.float32([1, 2.5]), **values))
        assert rows(call(np.ones(1))) == [1, -3, -(2.0**40), 2.0**41, 0.5, 0.1, 2, 7, 3.5]


def test_no_operands_and_arrays_without_axes():
    @native_function("; n: i32 -> i32[4]")
    def counts(y, n):
        for i in range(4):
            y[i] = i * n

    @native_function("f32[], i32 -> f32[]")
    def power(x, n, y):
        y[()] = x[()] ** n[()]

    assert rows(counts(n=3)) == [0, 3, 6, 9]
    assert rows(jit(power)(np.float32(3), np.int32(2))) == 9
    assert rows(vmap(power)(ROW, np.int32([1, 2, 3]))) == [1, 4, 27]
    assert rows(vmap(lambda x: counts(n=2), axis_size=2, in_axes=None)(0.0)) == [[0, 2, 4, 6]] * 2


# Transformations


@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all", "sequential"])
def test_vmap(method):
    @native_function("f32[n], f32[m] -> f32[n m]", vmap_method=method)
    def outer(x, y, z):
        for i in range(x.shape[0]):
            for j in range(y.shape[0]):
                z[i, j] = x[i] * y[j]

    xs = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    ys = np.arange(10, dtype=np.float32).reshape(2, 5)
    assert rows(vmap(outer)(xs[:, 0], ys)) == rows(np.einsum("bi,bj->bij", xs[:, 0], ys))
    assert rows(vmap(outer, (1, None), 2)(xs[0].T, ROW)) == rows(np.einsum("ai,j->ija", xs[0], ROW))
    nested = jit(vmap(vmap(outer, (0, None)), (0, 0)))(xs, ys)
    assert rows(nested) == rows(np.einsum("bai,bj->baij", xs, ys))
    nested = jit(vmap(vmap(outer, (None, 0)), (0, None)))(xs[:, 0], ys)
    assert rows(nested) == rows(np.einsum("ai,bj->abij", xs[:, 0], ys))
    assert vmap(outer)(xs[:0, 0], ys[:0]).shape == (0, 3, 5)


def test_leading_axes_with_operands_that_lack_them():
    @native_function("f32[... n], f32[n] -> f32[...]")
    def dot(x, w, y):
        s = np.float32(0)
        for i in range(x.shape[0]):
            s += x[i] * w[i]
        y[()] = s

    xs = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    ws = np.float32([[1, 2, 3], [0, 1, 0]])
    assert rows(dot(xs, ROW)) == rows(xs @ ROW)
    assert rows(vmap(dot)(xs, ws)) == rows(np.einsum("bai,bi->ba", xs, ws))
    assert rows(vmap(dot, (None, 0))(xs, ws)) == rows(np.einsum("bai,ci->cba", xs, ws))
    assert rows(vmap(dot, (1, None))(xs, ROW)) == rows(np.einsum("bai,i->ab", xs, ROW))


def test_derivatives_and_control_flow():
    with pytest.raises(ValueError, match=r"scaled' has no derivative: .* custom_vjp"):
        grad(lambda x: lax.reduce_sum(scaled(x, ROW), (0, 1)))(X)

    @custom_vjp
    def times(x):
        return scaled(x, ROW)

    times.defvjp(lambda x: (times(x), None), lambda _, g: (scaled(g, ROW),))
    slope = grad(lambda x: lax.reduce_sum(checkpoint(times)(x), (0, 1)))
    assert rows(jit(slope)(X)) == rows(np.ones_like(X) * ROW * 2)
    _, outs = jit(lambda x: lax.scan(lambda c, _: (times(c), c), x, None, length=3))(X)
    assert rows(outs)[2] == rows(X * (ROW * 2) ** 2)
    chosen = jit(lambda p, x: lax.cond(p, times, lambda x: x, x))
    assert rows(chosen(True, X)) == rows(X * ROW * 2) and rows(chosen(False, X)) == rows(X)


def test_symbolic_sizes():
    (n,) = export.symbolic_shape("n")
    traced = jit(scaled).trace(S((n, 3), F32), S((3,), F32))
    assert traced.jaxpr.out_avals[0].shape == (n, 3)


def test_results_in_the_memory_of_operands():
    x = jit(lambda x: x + 0)(ROW)
    assert rows(multiplied(x, by=3)) == [3, 6, 9] and rows(x) == [1, 2, 3]
    assert rows(jit(lambda x: multiplied(x + 1, by=2))(ROW)) == [4, 6, 8]
    mapped = vmap(lambda x: multiplied(x, by=2), in_axes=None, axis_size=2)
    assert rows(mapped(ROW)) == [[2, 4, 6]] * 2


def test_side_effects():
    def copied(x, y):
        for i in range(x.shape[0]):
            y[i] = x[i]

    for effect in (False, True):
        call = native_function("f32[n] -> f32[n]", has_side_effect=effect)(copied)
        compiled = jit(lambda x, call=call: (call(x), x)[1]).lower(ROW).compile()
        assert (call.name in compiled.as_text()) is effect
        assert rows(compiled(ROW)) == ROW.tolist()


# The call frame


def test_its_version_is_told_to_xla():
    from primax_ffi import _numba_handlers, pycapsule
    from primax_ffi._versions import installed_version, version_of

    scaled.compile()
    version = version_of(pycapsule(_numba_handlers._alive[-1][0].address))
    assert version == (0, 3) and version <= installed_version()


WRONG = [
    ([(2, 3), (3,), (3,)], {}, "float32"),
    ([(2, 3)], {}, "float32"),
    ([(2, 3), (4,)], {}, "float32"),
    ([(3,), (3,)], {}, "float32"),
    ([(2, 3), (3,)], {}, "int32"),
    ([(4, 2, 3), (2, 3)], {}, "float32"),
    ([(2, 3), (3,)], {"by": np.float64(2)}, "float32"),
    ([(2, 3), (3,)], {"by": [1.0]}, "float32"),
    ([(2, 3), (3,)], {"more": 1}, "float32"),
    ([(2, 3), (3,)], {"by": None, "bz": np.float32(1)}, "float32"),
    ([(2, 3), (3,)], {"by": None}, "float32"),
]


@pytest.mark.parametrize(("shapes", "attributes", "dtype"), WRONG)
def test_calls_that_do_not_fit_are_refused_when_they_run(shapes, attributes, dtype):
    """Programs that were compiled before a signature changed."""
    scaled.compile()
    out = ShapedArray(shapes[0] if len(shapes[0]) > 1 else (2, 3), F32)
    prim = Primitive("wrong_call")
    prim.rule(abstract)(lambda *xs, **_: out)
    prim.rule(lower)(ffi_lowering(scaled.name))
    values = {"by": np.float32(2), "shift": np.int32(0), **attributes}
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if v is not None}
    operands = [np.ones(shape, dtype) for shape in shapes]
    with pytest.raises(JaxRuntimeError, match=r"INVALID_ARGUMENT.* has the signature .* is called"):
        np.asarray(jit(lambda *xs: prim.bind(*xs, **values))(*operands))
    assert rows(scaled(X, ROW)) == (X * ROW * 2).tolist()


def test_the_description_of_a_wrong_call():
    prim = Primitive("wrong_call")
    prim.rule(abstract)(lambda x, **_: x)
    prim.rule(lower)(ffi_lowering(scaled.compile().name))
    text = r"scaled'.* is called with float32\[2 3\]; by, name -> float32\[2 3\]"
    with pytest.raises(JaxRuntimeError, match=text):
        np.asarray(prim.bind(X, by=1.0, name="a"))


# Exceptions


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (101, "ValueError: large .*test_native_function.py"),
        (-101, "ValueError: small at 2 .*test_native_function.py"),
        (-1, "ZeroDivisionError: division by zero"),
        (-2, "IndexError: index is out of bounds"),
    ],
)
def test_exceptions(value, text):
    x = np.float32([[1, 2, 3], [1, 2, value]])
    for call in (sums, jit(sums), vmap(sums)):
        with pytest.raises(JaxRuntimeError, match=f"sums' raised {text}"):
            np.asarray(call(x)[0])
    assert rows(sums(X)[1]) == [3, 12]


def test_in_threads():
    """Calls that succeed and calls that raise, at once."""
    failed: list[Any] = []

    def work(k: int) -> None:
        try:
            x = np.full((50, 40), k, F32)
            for _ in range(20):
                assert rows(jit(sums)(x)[1]) == [40.0 * k] * 50
                with pytest.raises(JaxRuntimeError, match="large"):
                    np.asarray(sums(x + 101)[0])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_python_runs_meanwhile():
    """A compiled function does not take the lock of the interpreter."""

    @native_function("i64[n] -> i64[n]")
    def long(x, y):
        for i in range(x.shape[0]):
            total = x[i]
            for k in range(200_000_000):  # a recurrence that compilers cannot write as a formula
                total = (total ^ (total >> 13)) * 6364136223846793005 + k
            y[i] = total

    def work() -> None:
        with enable_x64(True):
            np.asarray(long(np.int64([3])))

    long.compile()
    thread = threading.Thread(target=work)
    thread.start()
    steps = 0
    while thread.is_alive():
        time.sleep(0.005)
        steps += 1
    assert steps > 2  # with the lock held, the first sleep would end with the thread


# Refused functions


def two(x, y):
    y[:] = x


@pytest.mark.parametrize(
    ("signature", "function", "text"),
    [
        ("f32[n], f32[n] -> f32[n]", two, r"\['x', 'y'\], but .* 2 operands, 1 results"),
        ("f32[n]; by: f32 -> f32[n]", two, r"and the attributes \['by'\]"),
        ("f32[n]; by: f32 -> f32[n]", lambda x, y, bye: None, r"\['x', 'y', 'bye'\]"),
        ("f32[n] -> f32[n]", lambda x, y=None: None, "a default for the array 'y'"),
        ("f32[n] -> f32[n]", lambda x, *y: None, r"has \*args"),
        ("f32[n] -> f32[n]", np.sin, "takes a Python function"),
        ("f32[n] -> []", two, "has no results"),
        ("bf16[n] -> bf16[n]", two, "the dtype bfloat16, which numba does not have"),
        ("T[n] -> T[n]", two, "the dtype T: numba compiles it for one dtype"),
        ("f32[... n] -> f32[n]", two, "operands with ... and results without"),
        ("f32[n]; a: str -> f32[n]", two, "the attribute 'a' of type str"),
        ("f32[n]; a: c64 -> f32[n]", two, "the attribute 'a' of type c64"),
        ("f32[n]; a: bool[] -> f32[n]", two, "u8.. for booleans"),
        ("f32[n]", two, "signature: '->' is expected"),
        (["f32[n]"], two, "not a Signature or the text of one"),
    ],
)
def test_functions_that_do_not_fit(signature, function, text):
    with pytest.raises((TypeError, ValueError), match=text):
        native_function(signature)(function)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"vmap_method": "legacy_vectorized"}, "does not work for functions that numba compiles"),
        ({"vmap_method": "fast"}, "it is one of"),
        ({"error_model": "c"}, "it is 'python' or 'numpy'"),
        ({"name": ""}, "is a printable text, not ''"),
        ({"name": 3}, "is a printable text, not 3"),
        ({"partition": "batch", "has_side_effect": True}, "leave one of them out"),
    ],
)
def test_options_that_do_not_fit(options, text):
    with pytest.raises((TypeError, ValueError), match=text):
        native_function("f32[n] -> f32[n]", **options)(two)


def test_functions_that_numba_cannot_compile():
    import numba

    def into_operand(x, y):
        x[0] = y[0]

    def with_result(x, y):
        y[0] = 1
        return x

    for function, kind, text in (
        (into_operand, numba.TypingError, "Cannot modify readonly array"),
        (with_result, TypeError, r"returns a value .*write the results"),
    ):
        call = native_function("f32[n] -> f32[n]")(function)
        for _ in range(2):
            with pytest.raises(kind, match=text) as caught:
                call(ROW)
            assert f"compiled the native function {call.name!r}" in caught.value.__notes__[0]


def test_options_of_numba(tmp_path, monkeypatch):
    import numba

    def inverse(x, y):
        for i in range(x.shape[0]):
            y[i] = 1 / x[i]

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    options = {"error_model": "numpy", "cache": True, "fastmath": True}
    call = native_function("f32[n] -> f32[n]", **options)(inverse)
    assert rows(call(np.float32([2, 0.5]))) == [0.5, 2]
    assert {p.suffix for p in tmp_path.rglob("*.nb?")} == {".nbi", ".nbc"}
    call = native_function("f32[n] -> f32[n]", error_model="numpy")(inverse)
    assert rows(call(np.float32([2, 0]))) == [0.5, np.inf]


def test_names():
    def again(x, y):
        for i in range(x.shape[0]):
            y[i] = x[i] + 1

    first = native_function("f32[n] -> f32[n]")(again)
    second = native_function("f32[n] -> f32[n]")(lambda x, y: again(x, y))
    third = native_function("i32[n] -> i32[n]")(again)
    assert first.name.endswith("test_names.again") and third.name == first.name + "-2"
    assert rows(third(np.int32([1]))) == [2] and rows(first(ROW)) == [2, 3, 4]
    assert second.name != first.name
    assert native_function("f32[n] -> f32[n]", name="acme_again")(again).name == "acme_again"
    with pytest.raises(ValueError, match="the name 'acme_again', which another one has"):
        native_function("f32[n] -> f32[n]", name="acme_again")(again)


def test_operands_that_do_not_fit():
    for args, attributes, text in (
        ((X,), {}, "takes 2 operands, but the call has 1"),
        ((X, ROW, 2.0), {}, "takes 2 operands, but the call has 3"),
        ((X, ROW[:2]), {}, "for axis 0 the size n is 3 in operand 0"),
        ((X.astype(np.int32), ROW), {}, "the dtype float32 is expected"),
        ((X, ROW), {"by": "a"}, r"attribute 'by' .* is 'a' \(str\)"),
        ((X, ROW), {"bye": 1}, r"has the attributes \['bye'\]"),
    ):
        with pytest.raises(TypeError, match=text):
            scaled(*args, **attributes)
    with pytest.raises(TypeError, match=r"'by' .* is a traced value .*, but attributes"):
        jit(lambda by: scaled(X, ROW, by=by))(2.0)


def test_without_numba():
    run(
        """
        import sys
        sys.modules["numba"] = None
        import numpy as np, pytest
        from primax_ffi import native_function

        @native_function("f32[n] -> f32[n]")
        def copied(x, y):
            for i in range(x.shape[0]):
                y[i] = x[i]

        with pytest.raises(ImportError, match=r"pip install 'primax-ffi\\[numba\\]'"):
            copied(np.ones(3, np.float32))
        """,
        library=False,
    )


PROGRAM = """
import sys
import numpy as np
import primax_core as px
from primax_core import monitoring
from primax_ffi import native_function
assert "numba" not in sys.modules
hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event))

@native_function("f32[n]; by: f32 -> f32[n]")
def scaled(x, y, by):
    for i in range(x.shape[0]):
        y[i] = by * x[i] + OFFSET

print(np.asarray(px.jit(lambda x: scaled(x, by=3))(np.float32([1, 2]))).tolist())
print(sum("cache_hits" in e for e in hits))
"""


def test_executables_on_disk(tmp_path):
    """An executable contains the name of the function only, so it calls what is defined now."""
    env = {"PRIMAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    code = PROGRAM.replace("OFFSET", "0")
    assert run(code, library=False, **env).splitlines() == ["[3.0, 6.0]", "0"]
    assert run(PROGRAM.replace("OFFSET", "1"), library=False, **env).splitlines() == [
        "[4.0, 7.0]", "1",
    ]  # fmt: skip


def test_tracing_does_not_compile():
    """The first program that calls a function compiles it, in one thread."""
    run(
        """
        import sys
        from concurrent.futures import ThreadPoolExecutor
        import numpy as np
        import primax_core as px
        from primax_ffi import native_function

        @native_function("f32[n] -> f32[n]")
        def doubled(x, y):
            for i in range(x.shape[0]):
                y[i] = 2 * x[i]

        lowered = px.jit(doubled).lower(np.ones(3, np.float32))
        assert px.eval_shape(doubled, np.ones(3, np.float32)).shape == (3,)
        assert "numba" not in sys.modules and "custom_call" in lowered.as_text()
        from primax_ffi import _numba_handlers

        compilations, compile_handler = [], _numba_handlers.compile_handler
        def counted(*args):
            compilations.append(args)
            return compile_handler(*args)
        _numba_handlers.compile_handler = counted

        def call(n):
            return np.asarray(doubled(np.ones(n, np.float32))).tolist() == [2] * n

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(call, range(1, 9)))
        assert lowered.compile()(np.ones(3, np.float32)).tolist() == [2, 2, 2]
        doubled.compile()
        assert len(compilations) == 1
        """,
        library=False,
    )


# Mistakes of newcomers


def test_results_that_are_not_written():
    def rebound(x, y):
        y = x * 2  # noqa: F841

    def one_of_two(x, y, z):
        y[0] = x[0]

    def view(x, y):
        y = y[::-1]
        y[:] = x

    def by_another(x, y):
        _copy(x, y)

    for function, signature, name in (
        (rebound, "f32[n] -> f32[n]", "y"),
        (one_of_two, "f32[n] -> f32[n], f32[n]", "z"),
    ):
        with pytest.raises(
            TypeError, match=rf"does not write the result '{name}'\. .*{name}\[i\] ="
        ):
            native_function(signature)(function)
    assert rows(native_function("f32[n] -> f32[n]")(view)(ROW)) == [3, 2, 1]
    assert rows(native_function("f32[n] -> f32[n]")(by_another)(ROW)) == [1, 2, 3]
    native_function("f32[n] -> f32[n]", has_side_effect=True)(rebound)
    native_function("f32[n] -> f32[n], aliases {0: 0}")(rebound)


def _copy(x, y):
    y[:] = x


if importlib.util.find_spec("numba"):
    import numba

    _copy = numba.njit(_copy)


def test_functions_that_are_no_loops():
    async def coroutine(x, y):
        y[0] = x[0]

    def generator(x, y):
        y[0] = x[0]
        yield

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match="is a coroutine or a generator: remove async and"):
            native_function("f32[n] -> f32[n]")(function)


def test_options_are_checked_where_they_are_written():
    for method in (3, "auto", ["sequential"]):
        with pytest.raises((TypeError, ValueError), match=r"vmap_method is .*: it is one of"):
            native_function("f32[n] -> f32[n]", vmap_method=method)
    with pytest.raises(ValueError, match="'legacy_vectorized' does not work for"):
        native_function("f32[n] -> f32[n]", vmap_method="legacy_vectorized")

    def add(x, y, by="s"):
        y[:] = x + by

    with pytest.raises(TypeError, match=r"the default of 'by' of the native function .* is 's'"):
        native_function("f32[n]; by: f32 -> f32[n]")(add)
    named = native_function("f32[n] -> f32[n]", name="acme_named_once")
    named(lambda x, y: _copy(x, y))
    with pytest.raises(ValueError, match="choose another name; a function that is defined again"):
        named(lambda x, y: _copy(x, y))


def test_operands_that_are_no_arrays():
    for value, kind in (([1.0], "list"), ("a", "str"), (None, "NoneType")):
        for call in (multiplied, lambda x, by: vmap(lambda w: multiplied(x, by=by))(ROW)):
            with pytest.raises(TypeError, match=rf"operand 0 of '.*multiplied' is a {kind}, but"):
                call(value, by=2.0)


def test_an_attribute_named_self():
    @native_function("f32[n]; self: f32 -> f32[n]")
    def shifted(x, y, self):
        y[:] = x + self

    assert rows(shifted(ROW, self=1.0)) == [2, 3, 4]


def test_copies_and_pickles():
    assert (
        copy.copy(scaled) is copy.deepcopy(scaled) is pickle.loads(pickle.dumps(scaled)) is scaled
    )


def test_an_exception_without_a_text():
    with pytest.raises(
        JaxRuntimeError, match=r"_fails' raised _NoText: \(its text raised RuntimeErr"
    ):
        np.asarray(native_function("f32[n] -> f32[n]")(_fails)(ROW))


class _NoText(Exception):
    def __str__(self):
        raise RuntimeError("none")


def _fails(x, y):
    y[0] = 0
    raise _NoText


def test_numba_that_does_not_compile():
    run(
        """
        import numpy as np, pytest
        from primax_ffi import native_function

        @native_function("f32[n] -> f32[n]")
        def copied(x, y):
            y[:] = x

        with pytest.raises(RuntimeError, match="NUMBA_DISABLE_JIT is set: unset it"):
            copied(np.ones(3, np.float32))
        """,
        library=False,
        NUMBA_DISABLE_JIT="1",
    )
