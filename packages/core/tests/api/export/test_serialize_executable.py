"""Serialized compiled functions: their requirements are checked before XLA loads them."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax, serialize_executable as se
from primax_core._base.digest import digest
from primax_core._runtime import saved_executables as files
from primax_core.errors import InvalidArtifactError

X = np.arange(3, dtype=np.float32)


def compiled(f, *args, **options):
    return pc.jit(f, **options).lower(*args).compile()


@pytest.fixture(scope="module")
def saved():
    return se.serialize(compiled(lambda x, o: {"a": x + o["k"]}, X, {"k": X}))


def test_round_trip(saved) -> None:
    data, in_tree, out_tree = saved
    assert isinstance(data, bytes)
    loaded = se.deserialize_and_load(data, in_tree, out_tree)
    np.testing.assert_array_equal(loaded(X, {"k": X})["a"], 2 * X)
    assert (loaded.in_tree, loaded.out_tree) == (in_tree, out_tree)
    assert loaded.in_avals[0][0].str_short() == "f32[3]"
    assert loaded.out_info["a"].shape == (3,)
    assert loaded.input_shardings[0][0].device_set == {pc.devices()[0]}
    assert "HloModule" in loaded.as_text()
    assert loaded.cost_analysis() is not None
    assert se.serialize(loaded) == saved


def test_wrong_arguments(saved) -> None:
    loaded = se.deserialize_and_load(*saved)
    with pytest.raises(TypeError, match="does not match the input pytree"):
        loaded(X)
    with pytest.raises(TypeError, match=r"Argument 'x' compiled with float32\[3\] and called with"):
        loaded(X[:2], {"k": X})
    with pytest.raises(TypeError, match="Cannot apply Primax transformations"):
        pc.jit(loaded)(X, {"k": X})


def test_constants_donation_and_unused_arguments() -> None:
    table = pc.device_put(np.arange(100, dtype=np.float32))

    def f(x, y, z):
        return x + lax.reduce_sum(table, (0,)), z * 2

    loaded = se.deserialize_and_load(*se.serialize(compiled(f, X, X, 1, donate_argnums=0)))
    x = pc.device_put(X)
    out, twice = loaded(x, X, 3)
    assert x.is_deleted()
    np.testing.assert_array_equal(out, X + 4950)
    assert int(twice) == 6 and pc.typeof(twice).weak_type
    assert loaded.donate_argnums == (0,)


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "complex64", "float8_e5m2"])
def test_dtypes(dtype) -> None:
    x = pc.device_put(np.zeros((2, 3), np.int8).astype(dtype))
    loaded = se.deserialize_and_load(*se.serialize(compiled(lambda x: x, x)))
    assert loaded(x).dtype == x.dtype and loaded(x).shape == (2, 3)


def test_native_functions_are_registered() -> None:
    a = np.eye(3, dtype=np.float32)
    loaded = se.deserialize_and_load(*se.serialize(compiled(lax.linalg.cholesky, 4 * a)))
    np.testing.assert_array_equal(loaded(4 * a), 2 * a)


def test_no_arguments_no_results() -> None:
    assert float(se.deserialize_and_load(*se.serialize(compiled(lambda: 1.0)))()) == 1.0


def test_device(saved) -> None:
    """Loads on the device of compilation; another device is an error."""
    device = pc.devices()[0]
    for options in ({"backend": "cpu"}, {"execution_devices": [device]}):
        loaded = se.deserialize_and_load(*saved, **options)
        assert loaded(X, {"k": X})["a"].devices() == {device}
    with pytest.raises(ValueError, match="execution_devices has 2"):
        se.deserialize_and_load(*saved, execution_devices=pc.devices()[:2])


def test_executables_from_the_cache_are_saved_completely(tmp_path) -> None:
    """A deserialized executable of jaxlib is serialized without its code."""
    code = """
        import numpy as np, primax_core as pc
        x = np.arange(3, dtype=np.float32)
        c = pc.jit(lambda x: pc.lax.sin(x) * 1.2345).lower(x).compile()
        d = pc.serialize_executable.deserialize_and_load(*pc.serialize_executable.serialize(c))
        print(c._exe.loaded.from_bytes, np.allclose(d(x), np.sin(x) * 1.2345))
    """
    printed = [run(code, tmp_path) for _ in range(2)]
    assert printed == ["False True", "True True"]
    for file in tmp_path.glob("*.xla"):  # evicted from the cache
        file.rename(tmp_path / "moved")
    loaded_first = """
        import numpy as np, pathlib, primax_core as pc
        folder = pathlib.Path(pc.config.compilation_cache_dir)
        (folder / "moved").rename(folder / NAME)
        x = np.arange(3, dtype=np.float32)
        c = pc.jit(lambda x: pc.lax.sin(x) * 1.2345).lower(x).compile()
        (folder / NAME).unlink()
        d = pc.serialize_executable.deserialize_and_load(*pc.serialize_executable.serialize(c))
        print(c._exe.loaded.from_bytes, np.allclose(d(x), np.sin(x) * 1.2345))
    """
    name = file.name
    assert run(loaded_first.replace("NAME", repr(name)), tmp_path) == "True True"


def test_sorts_that_ran_are_serialized(tmp_path) -> None:
    """jaxlib cannot serialize a comparator that ran, so the function is compiled again."""
    code = """
        import numpy as np, primax_core as pc
        x = np.array([3, 1, 2], np.float32)
        c = pc.jit(lambda x: pc.lax.sort(x)).lower(x).compile()
        c(x)
        d = pc.serialize_executable.deserialize_and_load(*pc.serialize_executable.serialize(c))
        print(c._exe.loaded.from_bytes, d(x).tolist(), d(-x).tolist())
    """
    assert run(code, tmp_path) == "False [1.0, 2.0, 3.0] [-3.0, -2.0, -1.0]"


def run(code: str, cache) -> str:
    import os

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PRIMAX_COMPILATION_CACHE_DIR": str(cache)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


# Refusals


def test_only_compiled_functions() -> None:
    with pytest.raises(TypeError, match="takes a compiled function"):
        se.serialize(pc.jit(lambda x: x))


def test_callbacks() -> None:
    def f(x):
        return pc.pure_callback(lambda a: a, pc.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(ValueError, match="calls back into Python"):
        se.serialize(compiled(f, X))


def test_invalid_bytes(saved) -> None:
    data, *trees = saved
    for bad in (b"", b"abc", data[:40], data[:-1], data + b"\0", data[8:]):
        with pytest.raises(InvalidArtifactError):
            se.deserialize_and_load(bad, *trees)
    for at in range(0, len(data), 101):
        flipped = bytearray(data)
        flipped[at] ^= 1
        with pytest.raises(InvalidArtifactError):
            se.deserialize_and_load(bytes(flipped), *trees)
    with pytest.raises(TypeError, match="takes bytes"):
        se.deserialize_and_load("text", *trees)


def test_other_trees(saved) -> None:
    data, in_tree, out_tree = saved
    with pytest.raises(InvalidArtifactError, match="2 leaves, but in_tree has 1"):
        se.deserialize_and_load(data, out_tree, out_tree)
    with pytest.raises(InvalidArtifactError, match="1 leaves, but out_tree has None"):
        se.deserialize_and_load(data, in_tree, "tree")


def changed(data: bytes, **fields) -> bytes:
    """The bytes with another description and its checksum."""
    start = 8 + 32 + 24
    sizes = list(struct.unpack_from("<QQQ", data, 40))
    about = json.loads(data[start : start + sizes[0]])
    about.update({k: v for k, v in fields.items() if k != "machine"})
    about["machine"].update(fields.get("machine", {}))
    text = json.dumps(about).encode()
    rest = data[start + sizes[0] :]
    body = struct.pack("<QQQ", len(text), *sizes[1:]) + text + rest
    return files.MAGIC + digest(body) + body


@pytest.mark.parametrize(
    ("what", "value"),
    [("jaxlib", "('0.9.0',)"), ("processor", "()"), ("topology", "1"), ("platform", "tpu")],
)
def test_other_machines(saved, what, value) -> None:
    data, *trees = saved
    with pytest.raises(InvalidArtifactError, match=f"compiled for another {what}: "):
        se.deserialize_and_load(changed(data, machine={what: value}), *trees)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"in": [[[4], "float32", False]] * 2}, "arguments differ"),
        ({"in": [[[3], "int32", False]] * 2}, "arguments differ"),
        ({"out": [[[300000], "float32", False]]}, "results differ"),
        ({"out": [[[-3], "float32", False]]}, "a type cannot be read"),
        ({"out": [[[3], "float33", False]]}, "dtype 'float33', which is unknown"),
        ({"out": None}, "its out are missing"),
        ({"kept": [0]}, "arguments differ"),
        ({"kept": [0, 7]}, "kept are not indices of its arguments"),
        ({"donated": [-1]}, "donated are not indices of its arguments"),
        ({"needs": ["os.system"]}, "native functions 'os.system'"),
        ({"options": [["no_such_xla_flag", True]]}, "cannot be loaded"),
        ({"constants": [[[5], "float32", False]]}, "constants are missing"),
        ({"in_places": []}, "one format for each type"),
        ({"in_places": [["nowhere", None]] * 2}, "a format cannot be read"),
        ({"out_places": [[None, [[0, 0], [], 0]]]}, "a format cannot be read"),
        ({"name": 3}, "a name is not a string"),
    ],
)
def test_inconsistent_descriptions(saved, fields, match) -> None:
    data, *trees = saved
    with pytest.raises(InvalidArtifactError, match=match):
        se.deserialize_and_load(changed(data, **fields), *trees)


def test_what_could_not_be_read_again_is_not_serialized() -> None:
    """jaxlib reads executables with up to about 32 nested conditionals."""

    def nested(x, depth):
        if not depth:
            return x + 1
        return lax.cond(x > depth, lambda x: nested(x, depth - 1), lambda x: x - depth, x)

    x = np.float32(100)
    saved = se.serialize(pc.jit(lambda x: nested(x, 20)).lower(x).compile())
    assert se.deserialize_and_load(*saved)(x) == 101
    compiled = pc.jit(lambda x: nested(x, 40)).lower(x).compile()
    with pytest.raises(ValueError, match="more nested conditionals and loops than jaxlib can read"):
        se.serialize(compiled)
