"""Handlers in Rust: values, dtypes, attributes, memory, errors and panics."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from ffi_library import build

from primax_core import ShapeDtypeStruct, enable_x64, jit, lax, vmap
from primax_core.errors import JaxRuntimeError
from primax_ffi import ffi_call, include_dir, load_library, register_ffi_target, rust_bindings
from primax_ffi._versions import installed_version, version_of

FOLDER = Path(__file__).parent
F32 = np.dtype(np.float32)
NAMES = [f"acme_rust_{n}" for n in ("recurrence", "copy", "attributes", "increment", "fail")]
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bfloat16"),
]


@cache
def compiled() -> str:
    """The path of the library; the test is skipped without a compiler."""
    if path := os.environ.get("ACME_RUST_LIBRARY"):
        return path
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("rustc is not installed: these tests compile handlers in Rust")
    folder = Path(tempfile.mkdtemp(prefix="primax_rust_"))
    shutil.copy(rust_bindings(), folder)
    shutil.copy(FOLDER / "handlers.rs", folder / "lib.rs")
    options = ["--crate-type", "cdylib", "--edition", "2021", "-D", "warnings", "-C", "opt-level=1"]
    options += ["--crate-name", "acme_rust", "-o", "library.so"]
    subprocess.run([compiler, *options, "lib.rs"], cwd=folder, check=True)
    return str(folder / "library.so")


@cache
def library() -> ctypes.CDLL:
    return load_library(compiled(), NAMES)


def call(name, result, *args, **options):
    """The results of a handler; options with capital letters are those of ``ffi_call``."""
    library()
    settings = {k.lower(): options.pop(k) for k in [*options] if k.isupper()}
    return ffi_call(f"acme_rust_{name}", result, **settings)(*args, **options)


def test_values_and_vmap():
    rng = np.random.default_rng(0)
    a, x = rng.normal(size=(2, 3, 7)).astype(F32)
    expected, state = np.zeros_like(x), np.zeros(3, F32)
    for t in range(7):
        state = expected[:, t] = a[:, t] * state + x[:, t]
    result = lambda x: ShapeDtypeStruct(x.shape, F32)
    f = lambda a, x: call("recurrence", result(x), a, x, VMAP_METHOD="broadcast_all")
    np.testing.assert_allclose(jit(f)(a, x), expected, rtol=1e-6)
    np.testing.assert_allclose(vmap(f)(a, x), expected, rtol=1e-6)
    one = f(np.ones(7, F32), x[0])
    np.testing.assert_allclose(one, np.cumsum(x[0]), rtol=1e-5)
    mapped = vmap(f, in_axes=(None, 0))(np.ones(7, F32), x)
    np.testing.assert_allclose(mapped, np.cumsum(x, 1), rtol=1e-5)
    empty = np.zeros((2, 0), F32)
    assert f(empty, empty).shape == (2, 0)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
def test_dtypes(name, shape):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = np.array([1, 0, 3])[: 1 if shape == () else 3].astype(dtype)
    x = x.reshape(()) if shape == () else np.resize(x, shape)
    with enable_x64(True):
        out = np.asarray(call("copy", ShapeDtypeStruct(shape, dtype), x, dtype=name))
    assert out.dtype == dtype and out.shape == shape
    assert out.tobytes() == x.tobytes()


ATTRIBUTES = {
    "flag": True, "i": -(2**40), "narrow": np.uint8(255), "x": np.float32(0.5), "text": "größe",
    "axes": [3, 1, 2], "weights": np.float32([1, 2]), "inner": {"depth": 2.5, "name": "n"},
}  # fmt: skip


def attributes(**changed):
    with enable_x64(True):
        result = ShapeDtypeStruct((9,), np.dtype(np.float64))
        return np.asarray(call("attributes", result, **{**ATTRIBUTES, **changed}))


def test_attributes():
    assert attributes().tolist() == [1, -(2**40), 255, 0.5, 5, 6, 2, 2.5, 2]
    out = attributes(flag=False, text="", axes=np.zeros(0, np.int64), weights=np.zeros(0, F32))
    assert out.tolist()[4:7] == [0, 0, 0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": 0.5}, "'x' is read as f32, but it is float64"),
        ({"flag": 1}, "'flag' is read as bool, but it is int64"),
        ({"narrow": "1"}, "'narrow' is read as u8, but it is a text"),
        ({"text": [1]}, "'text' is read as &str, but it is an array"),
        ({"axes": np.int32([1])}, "'axes' is read as &[i64], but it is an array of int32"),
        ({"axes": 1}, "'axes' is read as &[i64], but it is a number"),
        ({"inner": "depth"}, "but it is a text"),
        ({"inner": {"deep": 1.0}}, "there is no attribute 'depth', but ['deep']"),
        ({"text": b"\xff"}, "it is a text that is not UTF-8"),
        ({"more": 1}, "the handler takes the attributes ['flag', 'i', 'narrow', 'x', 'text', "),
    ],
)
def test_attributes_that_do_not_fit(changed, message):
    with pytest.raises(JaxRuntimeError) as raised:
        attributes(**changed)
    assert message in str(raised.value).replace('"', "'")
    assert "acme_rust_attributes: " in str(raised.value)


def test_memory():
    x = np.arange(4, dtype=F32)
    result = ShapeDtypeStruct((4,), F32)
    aliased = jit(lambda x: call("increment", result, x, INPUT_OUTPUT_ALIASES={0: 0}))
    assert np.asarray(aliased(x)).tolist() == [1, 2, 3, 4]
    assert np.asarray(call("increment", result, x)).tolist() == [1, 2, 3, 4]  # a copy
    loop = jit(lambda x: lax.fori_loop(0, 3, lambda _, y: aliased(y), x))
    assert np.asarray(loop(x)).tolist() == [3, 4, 5, 6]
    assert x.tolist() == [0, 1, 2, 3]
    both = jit(lambda x: call("copy", result, x, INPUT_OUTPUT_ALIASES={0: 0}, dtype="float32"))
    with pytest.raises(JaxRuntimeError, match=r"has the memory of .*: use call.in_place\(0, 0\)"):
        both(x)


@pytest.mark.parametrize(
    ("dtype", "name", "message"),
    [
        (np.int32, "float32", "operand 0 has the dtype int32, but the handler takes float32"),
        (np.int8, "int8", "result 0 has the dtype float32, but the handler takes int8"),
        (ml_dtypes.float8_e5m2, "float32", "has the dtype of number 19 in XLA"),
    ],
)
def test_other_dtypes(dtype, name, message):
    x = np.ones(3, dtype)
    with pytest.raises(JaxRuntimeError, match=message):
        call("copy", ShapeDtypeStruct((3,), F32), x, dtype=name)


def test_other_counts():
    x, result = np.ones(3, F32), ShapeDtypeStruct((3,), F32)
    with pytest.raises(JaxRuntimeError, match="takes 1 operands, but the call has 2"):
        call("copy", result, x, x, dtype="float32")
    with pytest.raises(JaxRuntimeError, match="takes 1 results, but the call has 2"):
        call("copy", [result, result], x, dtype="float32")
    with pytest.raises(JaxRuntimeError, match="result 0 has 2"):
        call("increment", ShapeDtypeStruct((2,), F32), x)


FAILURES = {
    "error": "INVALID_ARGUMENT: acme_rust_fail: the pivot is?zero",
    "unimplemented": "UNIMPLEMENTED: acme_rust_fail: not for this shape",
    "code 0": "INTERNAL: acme_rust_fail: no code",
    "panic": "INTERNAL: acme_rust_fail: panic: the pivot of column 3 is zero",
    "payload": "INTERNAL: acme_rust_fail: panic: without a text",
    "index": "INTERNAL: acme_rust_fail: panic: index out of bounds: the len is 3 but",
    "operand": "there is no operand 1 among the 1",
    "result": "there is no result 1 among the 1",
    "taken": "result 0 is taken twice",
    "attribute": 'there is no attribute "who", but ["how"]',
    "kind": 'the attribute "how" is read as i64, but it is a text',
}


def test_errors_and_panics():
    code = f"""
        import os
        import numpy as np
        from primax_core import ShapeDtypeStruct
        from primax_core.errors import JaxRuntimeError
        from primax_ffi import ffi_call, load_library

        load_library(os.environ["ACME_RUST_LIBRARY"], ["acme_rust_fail"])
        call = ffi_call("acme_rust_fail", ShapeDtypeStruct((3,), np.dtype(np.float32)))
        x = np.ones(3, np.float32)
        for how, message in {FAILURES!r}.items():
            try:
                np.asarray(call(x, how=how))
            except JaxRuntimeError as error:
                assert message in str(error), (how, str(error))
            else:
                raise AssertionError(how)
        print(np.asarray(call(x, how="none")).tolist())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "ACME_RUST_LIBRARY": compiled()},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[1.0, 1.0, 1.0]"
    assert done.stderr.count("panicked at") == 3  # a message of Rust for each panic


def test_handlers_have_one_stage():
    handler = library().acme_rust_increment
    stages = {"instantiate": handler, "execute": handler}
    register_ffi_target("acme_rust_stages", stages)
    with pytest.raises(JaxRuntimeError, match="the handler is one of the stage execute"):
        ffi_call("acme_rust_stages", ShapeDtypeStruct((3,), F32))(np.ones(3, F32))


def test_the_version_is_that_of_the_oldest_headers():
    for name in NAMES:
        assert version_of(getattr(library(), name)) == (0, 3)


def test_structures_have_the_layout_of_the_header():
    if installed_version() != (0, 3):
        pytest.skip("the bindings have the layout of the headers of jaxlib 0.10: install it")
    rust, header = library(), ctypes.CDLL(build(FOLDER / "handlers_layout.cc", include_dir()))

    def layout(source):
        out = (ctypes.c_size_t * 100)()
        source.acme_layout.restype = ctypes.c_size_t
        return [*out][: source.acme_layout(out)]

    assert len(layout(rust)) > 60
    assert layout(rust) == layout(header)
