"""Serialized exported functions: fields, pytrees, and other format versions."""

from __future__ import annotations

import collections
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax, tree_util
from primax_core.errors import InvalidArtifactError
from primax_core.extend import node_serialization
from primax_interpreters import export
from primax_interpreters._export import envelope, tables

X = np.arange(3, dtype=np.float32)

FIELDS = (
    "fun_name", "in_tree", "in_avals", "out_tree", "out_avals", "in_shardings_hlo",
    "out_shardings_hlo", "nr_devices", "platforms", "ordered_effects", "unordered_effects",
    "disabled_safety_checks", "mlir_module_serialized", "calling_convention_version",
    "module_kept_var_idx", "uses_global_constants",
)  # fmt: skip


def there_and_back(f, *args, options=None, **kwargs):
    exported = export.export(pc.jit(f), **(options or {}))(*args, **kwargs)
    loaded = export.deserialize(exported.serialize())
    for name in FIELDS:
        assert getattr(loaded, name) == getattr(exported, name), name
    return loaded


def test_everything_survives() -> None:
    target = export.DisabledSafetyCheck.custom_call("some_kernel")
    options = {"platforms": ("cpu", "tpu"), "disabled_checks": [target]}
    loaded = there_and_back(lambda x, y, k=None: {"a": (x * k, [k])}, X, 1, k=2.0, options=options)
    np.testing.assert_array_equal(loaded.call(X, 1, k=3.0)["a"][0], X * 3)
    assert loaded.serialize() == export.deserialize(loaded.serialize()).serialize()


def test_bytes_are_stable_and_of_any_kind() -> None:
    exported = export.export(pc.jit(lambda x: x + 1))(X)
    data = exported.serialize()
    assert isinstance(data, bytearray) and data == exported.serialize()
    for kind in (bytes, bytearray, memoryview):
        np.testing.assert_array_equal(export.deserialize(kind(data)).call(X), X + 1)


def test_no_arguments_and_no_results() -> None:
    assert there_and_back(lambda: ()).call() == ()
    assert float(there_and_back(lambda: 1.0).call()) == 1.0


def test_orders_of_derivatives() -> None:
    exported = export.export(pc.jit(lambda x, i: x * lax.sin(x) * i))(X, np.int32(2))
    sizes = [len(exported.serialize(vjp_order=n)) for n in range(3)]
    assert sizes == sorted(sizes)
    loaded = export.deserialize(exported.serialize(vjp_order=2))
    assert loaded.vjp().vjp().in_avals == exported.vjp().vjp().in_avals
    assert loaded.vjp().has_vjp() and not loaded.vjp().vjp().has_vjp()
    for e in (exported, loaded):
        g = pc.grad(lambda x, e=e: lax.reduce_sum(e.call(x, np.int32(2)), (0,)))
        np.testing.assert_allclose(g(X), 2 * (np.sin(X) + X * np.cos(X)), rtol=1e-5)
        h = pc.grad(lambda x, g=g: lax.reduce_sum(g(x), (0,)))
        np.testing.assert_allclose(h(X), 2 * (2 * np.cos(X) - X * np.sin(X)), rtol=1e-5)
    with pytest.raises(ValueError, match="vjp_order must be"):
        exported.serialize(vjp_order=-1)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int4", "uint2", "int8", "uint16", "int32", "float16", "bfloat16", "float32",
     "float8_e4m3fn", "complex64", "float0"],
)  # fmt: skip
def test_dtypes(dtype: str) -> None:
    kind = pc.float0 if dtype == "float0" else dtype
    loaded = there_and_back(lambda x: x, pc.ShapeDtypeStruct((2, 0), kind))
    assert loaded.in_avals[0].shape == (2, 0)


def test_wide_dtypes() -> None:
    with pc.enable_x64(True):
        for dtype in ("float64", "int64", "complex128"):
            there_and_back(lambda x: x + 1, np.ones(2, dtype))


# Trees


class Box:
    def __init__(self, x, tag):
        self.x, self.tag = x, tag


tree_util.register_pytree_node(Box, lambda b: ((b.x,), b.tag), lambda tag, xs: Box(*xs, tag))
Pair = collections.namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    "tree",
    [
        (X, [X, None, ()], {"b": X, "a": {"": X}}),
        {1: X, -2: X},
        collections.OrderedDict([("z", X), ("a", X)]),
        [[[[]]]],
        {"ключ": X, "a b\n": X},
    ],
)
def test_containers(tree) -> None:
    loaded = there_and_back(lambda t: t, tree)
    assert str(loaded.in_tree) == str(tree_util.tree_structure(((tree,), {})))
    loaded.call(tree)


def test_unsupported_dictionary_keys() -> None:
    exported = export.export(pc.jit(lambda t: t))({(1, 2): X})
    with pytest.raises(TypeError, match=r"string or integer keys. Found key \(1, 2\)"):
        exported.serialize()


def test_registered_classes(monkeypatch) -> None:
    exported = export.export(pc.jit(lambda b: b))(Box(Pair(X, X), "tag"))
    with pytest.raises(ValueError, match=r"unregistered type `.*(Box|Pair)'>`.*register_pytree"):
        exported.serialize()
    name = export.register_pytree_node_serialization(
        Box, serialized_name="test.Box", serialize_auxdata=str.encode,
        deserialize_auxdata=lambda data: data.decode(),
    )  # fmt: skip
    assert name is Box
    with pytest.raises(ValueError, match=r"unregistered type `.*Pair'>`"):
        exported.serialize()
    assert export.register_namedtuple_serialization(Pair, serialized_name="test.Pair") is Pair
    loaded = export.deserialize(exported.serialize())
    assert loaded.in_tree == exported.in_tree
    out = loaded.call(Box(Pair(X, 2 * X), "tag"))
    assert type(out) is Box and out.tag == "tag" and type(out.x) is Pair
    with pytest.raises(ValueError, match="same pytree structure"):
        loaded.call(Box(Pair(X, X), "other tag"))


def test_registering_twice() -> None:
    for second in (Pair, collections.namedtuple("Other", "a")):
        with pytest.raises(ValueError, match="Duplicate serialization registration"):
            for kind in (Pair, second):
                export.register_namedtuple_serialization(kind, serialized_name="test.Twice")


def test_registering_a_class_that_is_not_a_node() -> None:
    class Plain:
        pass

    with pytest.raises(ValueError, match="is not registered as a tree node"):
        export.register_pytree_node_serialization(
            Plain, serialized_name="p", serialize_auxdata=bytes, deserialize_auxdata=bytes
        )
    with pytest.raises(ValueError, match="is not a named tuple"):
        export.register_namedtuple_serialization(Plain, serialized_name="p")


def test_metadata_that_are_not_bytes() -> None:
    @tree_util.register_pytree_node_class
    class Odd:
        def tree_flatten(self):
            return (), "aux"

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls()

    export.register_pytree_node_serialization(
        Odd, serialized_name="test.Odd", serialize_auxdata=lambda aux: aux,
        deserialize_auxdata=lambda data: data,
    )  # fmt: skip
    exported = export.export(pc.jit(lambda x: x))(Odd())
    with pytest.raises(ValueError, match=r"must return bytes. It returned a <class 'str'>"):
        exported.serialize()


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_in_another_process(tmp_path) -> None:
    """Linear algebra and derivatives in a process without traces; an unknown class."""

    def f(x):
        return lax.linalg.cholesky(lax.dot(x, x) + 5 * np.eye(3, dtype=np.float32))

    path = tmp_path / "artifact"
    path.write_bytes(export.export(pc.jit(f))(np.eye(3, dtype=np.float32)).serialize(1))
    code = f"""
        import numpy as np, primax_core as pc, pathlib
        from primax_interpreters import export
        found = export.deserialize(pathlib.Path({str(path)!r}).read_bytes())
        x = np.eye(3, dtype=np.float32)
        print(np.asarray(found.call(x))[0, 0] ** 2, found.vjp().call(x, x)[0].shape)
    """
    printed = run(code).split(" ", 1)
    assert float(printed[0]) == pytest.approx(6) and printed[1] == "(3, 3)"
    if node_serialization(Pair) is None:
        export.register_namedtuple_serialization(Pair, serialized_name="test.Pair")
    path.write_bytes(export.export(pc.jit(lambda p: p))(Pair(X, X)).serialize())
    code = f"""
        import primax_core as pc, pathlib
        from primax_interpreters import export
        try:
            export.deserialize(pathlib.Path({str(path)!r}).read_bytes())
        except pc.errors.InvalidArtifactError as e:
            print(e)
    """
    assert "'test.Pair': it is not registered in this process" in run(code)


def test_without_the_library(tmp_path) -> None:
    """Serialization requires flatbuffers and the error says so; deserialization does not."""
    path = tmp_path / "artifact"
    path.write_bytes(export.export(pc.jit(lambda x: x + 1))(X).serialize())
    code = f"""
        import sys, pathlib
        sys.modules["flatbuffers"] = None
        import numpy as np
        from primax_interpreters import export
        found = export.deserialize(pathlib.Path({str(path)!r}).read_bytes())
        print(found.call(np.zeros(3, np.float32)).tolist())
        try:
            found.serialize()
        except ImportError as e:
            print(e)
    """
    assert run(code).splitlines() == [
        "[1.0, 1.0, 1.0]",
        "serializing exported functions needs the package flatbuffers: "
        "pip install 'primax-interpreters[export]'",
    ]


# Other versions


@pytest.fixture(scope="module")
def artifact() -> bytes:
    return bytes(export.export(pc.jit(lambda x: {"a": x + 1}))(X).serialize(vjp_order=1))


def test_later_minor_versions_add_fields(artifact, monkeypatch) -> None:
    """Fields of later minor versions are ignored."""
    added = [(40, "u32", 7), (41, "u8", 1)]
    write = tables.write_table

    def write_more(b, fields):
        return write(b, [*fields, *added])

    for module in ("envelope", "trees"):
        monkeypatch.setattr(f"primax_interpreters._export.{module}.write_table", write_more)
    body = envelope.pack(export.deserialize(artifact))[envelope._BODY :]
    later = envelope.seal(body, envelope.MAJOR, 9)
    assert len(later) > len(artifact) / 2
    np.testing.assert_array_equal(export.deserialize(later).call(X)["a"], X + 1)


def test_earlier_minor_versions_lack_fields(artifact, monkeypatch) -> None:
    """Fields that are absent have defaults."""
    write = tables.write_table
    monkeypatch.setattr(
        "primax_interpreters._export.envelope.write_table",
        lambda b, fields: write(b, [f for f in fields if f[0] not in (6, 9, 13, 14)]),
    )
    body = envelope.pack(export.deserialize(artifact))[envelope._BODY :]
    loaded = export.deserialize(envelope.seal(body))
    assert loaded.nr_devices == 1 and loaded.disabled_safety_checks == ()
    np.testing.assert_array_equal(loaded.call(X)["a"], X + 1)


def test_later_major_versions(artifact) -> None:
    later = envelope.seal(artifact[envelope._BODY :], envelope.MAJOR + 1, 0)
    with pytest.raises(InvalidArtifactError, match="written by a later version of Primax"):
        export.deserialize(later)


def test_later_calling_conventions(artifact, monkeypatch) -> None:
    most = export.maximum_supported_calling_convention_version
    monkeypatch.setattr(
        "primax_interpreters._export.exporting.maximum_supported_calling_convention_version",
        most - 1,
    )
    with pytest.raises(InvalidArtifactError, match=f"calling convention {most}"):
        export.deserialize(artifact)


def test_modules_are_written_for_readers_of_twelve_weeks_before(artifact) -> None:
    from jaxlib.mlir.dialects import stablehlo

    requirement = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    version = stablehlo.get_version_from_compatibility_requirement(requirement)
    assert f"StableHLO_v{version}".encode() in artifact
