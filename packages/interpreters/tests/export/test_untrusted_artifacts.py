"""Damaged and malicious artifacts: specific errors, and nothing is executed."""

from __future__ import annotations

import dataclasses
import re
import struct
import time

import numpy as np
import pytest

import primax_core as pc
from primax_core.errors import InvalidArtifactError
from primax_core.extend import ShapedArray
from primax_interpreters import export
from primax_interpreters._export import envelope

X = np.arange(2, dtype=np.float32)


@pytest.fixture(scope="module")
def exported() -> export.Exported:
    return export.export(pc.jit(lambda x: x + x))(X)


@pytest.fixture(scope="module")
def artifact(exported) -> bytes:
    return bytes(exported.serialize())


# Accidents


def test_other_bytes(artifact) -> None:
    for data, why in [
        (b"", "they are empty"),
        (b"some text", "they begin with b'some tex'"),
        (b"ML\xefR\x00\x01", "they are an MLIR module"),
        (b"PRMXaot1" + artifact, "a Primax file of another kind"),
    ]:
        with pytest.raises(InvalidArtifactError, match=re.escape(why)):
            export.deserialize(data)
    with pytest.raises(TypeError, match="takes bytes"):
        export.deserialize("text")


def test_truncated_at_every_length(artifact) -> None:
    for n in range(len(artifact)):
        with pytest.raises(InvalidArtifactError):
            export.deserialize(artifact[:n])
    with pytest.raises(InvalidArtifactError, match="but its header says"):
        export.deserialize(artifact + b"\0")


def test_one_bit_anywhere(artifact) -> None:
    for at in range(0, len(artifact), 7):
        data = bytearray(artifact)
        data[at] ^= 1 << at % 8
        with pytest.raises(InvalidArtifactError):
            export.deserialize(data)


def test_the_error_is_public_and_documented(artifact) -> None:
    assert issubclass(pc.errors.InvalidArtifactError, ValueError)
    with pytest.raises(ValueError, match=r"See https://.*/errors/InvalidArtifactError\.html"):
        export.deserialize(artifact[:-1])


# Tables with a correct checksum


def resealed(artifact: bytes, change) -> bytes:
    body = bytearray(artifact[envelope._BODY :])
    change(body)
    return envelope.seal(bytes(body))


def test_offsets_beyond_the_end(artifact) -> None:
    size = len(artifact) - envelope._BODY
    for value in (size, size - 1, 0xFFFFFFFF, 0x7FFFFFFF, 0):
        data = resealed(artifact, lambda b, v=value: struct.pack_into("<I", b, 0, v))
        with pytest.raises(InvalidArtifactError):
            export.deserialize(data)


def table_of_itself() -> bytes:
    """A function whose tree has itself as its two children."""
    body = bytearray(struct.pack("<I", 20))
    body += struct.pack("<4H", 8, 12, 0, 4) + b"\0" * 8  # fields of the function: its tree
    body += struct.pack("<iI", 16, 20)  # the function; its tree
    body += b"\0" * 4
    fields = len(body)
    body += struct.pack("<8H", 14, 8, 0, 0, 0, 0, 4, 0)  # fields of the node: children
    at = len(body)
    body += struct.pack("<iI", at - fields, 4) + struct.pack("<I", 2)
    vector = len(body)
    for i in range(2):
        body += struct.pack("<i", at - (vector + 4 * i) & 0x7FFFFFFF)
    struct.pack_into("<I", body, 24, at - 24)
    return bytes(body)


def test_cyclic_tables_raise() -> None:
    started = time.perf_counter()
    with pytest.raises(InvalidArtifactError):
        export.deserialize(envelope.seal(table_of_itself()))
    assert time.perf_counter() - started < 10


def replaced(e: export.Exported, **changes) -> bytes:
    return bytes(dataclasses.replace(e, **changes).serialize())


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"module_kept_var_idx": (1,)}, "arguments of main are not among"),
        ({"module_kept_var_idx": (0, 0)}, "arguments of main are not among"),
        ({"module_kept_var_idx": ()}, "not have the arguments that"),
        ({"platforms": ()}, "names no platforms"),
        ({"platforms": ("cpu", "tpu")}, "not have the arguments that"),
        ({"in_avals": ()}, "one type for each leaf"),
        ({"in_avals": (ShapedArray((3,), np.float32),)}, "not have the arguments that"),
        ({"out_avals": (ShapedArray((2,), np.int32),)}, "not have the results that"),
        ({"out_avals": (ShapedArray((1 << 60, 16), np.float32),)}, "damaged"),
        ({"mlir_module_serialized": b""}, "artifact's module"),
        ({"mlir_module_serialized": b"ML\xefR"}, "artifact's module"),
        ({"calling_convention_version": 3}, "calling convention 3"),
        ({"disabled_safety_checks": ("nonsense",)}, "unknown check 'nonsense'"),
    ],
)
def test_inconsistent_fields(exported, changes, match) -> None:
    data = replaced(exported, **changes)
    with pytest.raises(InvalidArtifactError, match=match):
        export.deserialize(data)


class Text(str):
    """A size or a dtype name that is serialized unchanged."""

    @property
    def name(self):
        return str(self)


@pytest.mark.parametrize(
    "size",
    [
        "-1",
        "1.5",
        "",
        "a-a",
        "9" * 30,
        "a,b",
        "...",
        "a^99999999",
        "mod(a,0)",
        "x" * 9999,
        "floordiv(a+b+c+d+e+f+g,1)^99",
        "floordiv(9^99,1)^99",
        "max(" * 300 + "a" + ",b)" * 300,
    ],
)
def test_invalid_sizes(exported, size) -> None:
    aval = type("Aval", (), {"shape": (Text(size),), "dtype": np.dtype("f4"), "weak_type": False})
    with pytest.raises(InvalidArtifactError):
        export.deserialize(replaced(exported, in_avals=(aval,)))


def test_the_checksum_covers_the_header(artifact) -> None:
    head = bytearray(artifact)
    head[10] ^= 1  # the minor version
    with pytest.raises(InvalidArtifactError, match="checksum"):
        export.deserialize(head)


# Modules; the core's tests have the others


NATIVE = """module { func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %r = stablehlo.custom_call @TARGET(%a) : (tensor<2xf32>) -> tensor<2xf32>
    return %r : tensor<2xf32> } }"""


def module_of(text: str) -> bytes:
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        stablehlo.register_dialect(context)
        return stablehlo.serialize_portable_artifact(ir.Module.parse(text), "1.13.0")


@pytest.mark.parametrize("target", ["TopK", "os_system", "xla.sdy.FuncResultSharding"])
def test_native_functions(exported, target) -> None:
    module = module_of(NATIVE.replace("TARGET", target))
    with pytest.raises(InvalidArtifactError, match=f"calls the native function '{target}'"):
        export.deserialize(replaced(exported, mlir_module_serialized=module))
    # The exporter may have allowed it: the artifact is loaded, but cannot be called.
    check = export.DisabledSafetyCheck.custom_call(target)
    declared = replaced(exported, mlir_module_serialized=module, disabled_safety_checks=(check,))
    loaded = export.deserialize(declared)
    assert loaded.disabled_safety_checks == (check,)
    for call in (loaded.call, pc.jit(loaded.call)):
        with pytest.raises(InvalidArtifactError, match="trusted=True"):
            call(X)


def test_native_functions_of_trusted_artifacts(exported) -> None:
    """A trusted artifact reaches XLA, which does not know the function."""
    check = export.DisabledSafetyCheck.custom_call("no_such_function")
    module = module_of(NATIVE.replace("TARGET", "no_such_function"))
    data = replaced(exported, mlir_module_serialized=module, disabled_safety_checks=(check,))
    with pytest.raises(pc.errors.JaxRuntimeError, match="NOT_FOUND"):
        export.deserialize(data, trusted=True).call(X)
