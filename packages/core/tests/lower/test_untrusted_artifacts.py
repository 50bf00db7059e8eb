"""Damaged and malicious artifacts: specific errors, and nothing is executed."""

from __future__ import annotations

import dataclasses
import re
import struct
import time

import numpy as np
import pytest

import primax_core as pc
from primax_core import export, lax
from primax_core._api.export import envelope
from primax_core._api.export.checks import check_module
from primax_core._base import pytree
from primax_core._base.digest import digest
from primax_core._ir.symbolic_dims import UnknownDimensionError
from primax_core._lower import untrusted
from primax_core._lower.platforms import lower_for
from primax_core.errors import InvalidArtifactError
from primax_core.extend import RuleState, ShapedArray, samples
from primax_core.testing import primitives_of
from primax_core.testing.calls import Call

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
    with pytest.raises(ValueError, match=r"docs/errors\.md, section InvalidArtifactError"):
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
    "size", ["-1", "1.5", "", "a-a", "9" * 30, "a,b", "...", "a^99999999", "mod(a,0)", "x" * 9999]
)
def test_invalid_sizes(exported, size) -> None:
    aval = type("Aval", (), {"shape": (Text(size),), "dtype": np.dtype("f4"), "weak_type": False})
    with pytest.raises(InvalidArtifactError):
        export.deserialize(replaced(exported, in_avals=(aval,)))


# Modules


def module_of(text: str) -> bytes:
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    from primax_core._lower.context import context

    return stablehlo.serialize_portable_artifact(ir.Module.parse(text, context), "1.13.0")


def main(body: str, extra: str = "") -> str:
    return (
        "module { func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
        f"{body}\nreturn %r : tensor<2xf32> }}\n{extra} }}"
    )


CALL_F = "%r = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>"
F_CALLS = (
    "func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {{ {} return %r : tensor<2xf32> }}"
)
DEEP = (
    "%p = stablehlo.constant dense<true> : tensor<i1>\n"
    + "".join(f'%r{i} = "stablehlo.if"(%p) ({{\n' for i in range(300))
    + "stablehlo.return %a : tensor<2xf32>\n"
    + "".join(
        "}, { stablehlo.return %a : tensor<2xf32> }) : (tensor<i1>) -> tensor<2xf32>\n"
        + (f"stablehlo.return %r{i} : tensor<2xf32>\n" if i else "")
        for i in reversed(range(300))
    )
    + "%r = stablehlo.add %r0, %r0 : tensor<2xf32>"
)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (main(CALL_F, F_CALLS.format(CALL_F)), "'f' calls itself"),
        (main(CALL_F.replace("@f", "@main")), "'main' calls itself"),
        (
            main(CALL_F, F_CALLS.format(
                '%r = stablehlo.composite "x.y" %a {decomposition = @f, version = 1 : i32} : '
                "(tensor<2xf32>) -> tensor<2xf32>"
            )),
            "'f' calls itself",
        ),
        (main(CALL_F, "func.func private @f(tensor<2xf32>) -> tensor<2xf32>"), "'f' has no body"),
        (
            main("%z = stablehlo.iota dim = 0 : tensor<4611686018427387904x8xf32>\n"
                 "%r = stablehlo.add %a, %a : tensor<2xf32>"),
            "more bytes than can be addressed",
        ),
        (main(DEEP), "nested too deeply"),
        (
            main("%t = stablehlo.create_token : !stablehlo.token\n"
                 '%r, %k = "stablehlo.infeed"(%t) : '
                 "(!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)"),
            "stablehlo.infeed communicates with the host",
        ),
        ("module { func.func public @other() { return } }", "no function main"),
    ],
)  # fmt: skip
def test_modules_that_would_crash_the_process(exported, text, match) -> None:
    data = replaced(exported, mlir_module_serialized=module_of(text))
    for trusted in (False, True):
        with pytest.raises(InvalidArtifactError, match=match):
            export.deserialize(data, trusted=trusted)


def native(target: str, more: str = "") -> str:
    return main(
        f"%r = stablehlo.custom_call @{target}(%a) {more} : (tensor<2xf32>) -> tensor<2xf32>"
    )


@pytest.mark.parametrize("target", ["TopK", "os_system", "xla.sdy.FuncResultSharding"])
def test_native_functions(exported, target) -> None:
    module = module_of(native(target))
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
    module = module_of(native("no_such_function"))
    data = replaced(exported, mlir_module_serialized=module, disabled_safety_checks=(check,))
    with pytest.raises(pc.errors.JaxRuntimeError, match="NOT_FOUND"):
        export.deserialize(data, trusted=True).call(X)


@pytest.mark.parametrize(
    "target", ["xla_ffi_python_cpu_callback", "xla_python_cpu_callback",
               "xla_ffi_python_gpu_callback", "xla_ffi_partitioned_python_cpu_callback"],
)  # fmt: skip
def test_python_callbacks_are_never_allowed(exported, target) -> None:
    module = module_of(
        native(target, "{api_version = 4 : i32, backend_config = {index = 0 : ui64}}")
    )
    check = export.DisabledSafetyCheck.custom_call(target)
    data = replaced(exported, mlir_module_serialized=module, disabled_safety_checks=(check,))
    for trusted in (False, True):
        with pytest.raises(InvalidArtifactError, match=target):
            export.deserialize(data, trusted=trusted)


BIG, SMALL, INFO = "tensor<600x600xf32>", "tensor<2x2xf32>", "tensor<i32>"


@pytest.mark.parametrize(
    ("routine", "config", "operands", "results"),
    [
        ("spotrf", "uplo = 85 : ui8", [BIG], [SMALL, INFO]),
        ("sgetrf", "", [BIG], [BIG, "tensor<1xi32>", INFO]),
        ("sgeqrf", "", [BIG], [BIG, "tensor<1xf32>"]),
        ("sgeqp3", "", [BIG, "tensor<600xi32>"], [BIG, "tensor<1xi32>", "tensor<600xf32>"]),
        ("sorgqr", "", [SMALL, "tensor<600xf32>"], [SMALL]),
        ("ssyevd", "mode = 86 : ui8, uplo = 76 : ui8", [BIG], [BIG, "tensor<1xf32>", INFO]),
        ("sgesdd", "mode = 65 : ui8", [BIG], [BIG, "tensor<600xf32>", SMALL, SMALL, INFO]),
        ("sgehrd", "low = 1 : i32, high = 9999 : i32", [BIG], [BIG, "tensor<599xf32>", INFO]),
        ("strsm", "side = 76 : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 78 : ui8",
         [BIG, BIG], [SMALL]),
    ],
)  # fmt: skip
def test_lapack_calls_with_wrong_shapes(exported, routine, config, operands, results) -> None:
    """jaxlib's functions do not check shapes and would write out of bounds."""
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(operands))
    passed = ", ".join(f"%a{i}" for i in range(len(operands)))
    n = len(results)
    returned = ", ".join(f"%r#{i}" for i in range(n)) if n > 1 else "%r"
    names = f"%r:{n}" if n > 1 else "%r"
    types = ", ".join(results)
    text = (
        f"module {{ func.func public @main({arguments}) -> ({types}) {{ {names}"
        f" = stablehlo.custom_call @lapack_{routine}_ffi({passed}) {{api_version = 4 : i32, "
        f"backend_config = {{{config}}}}} : ({', '.join(operands)}) -> ({types})\n"
        f"return {returned} : {types} }} }}"
    )
    data = replaced(
        exported, mlir_module_serialized=module_of(text),
        in_avals=tuple(map(aval_of, operands)), out_avals=tuple(map(aval_of, results)),
        in_tree=pytree.tree_structure(((0,) * len(operands), {})),
        out_tree=pytree.tree_structure((0,) * n), module_kept_var_idx=tuple(range(len(operands))),
    )  # fmt: skip
    with pytest.raises(InvalidArtifactError, match=f"is invalid: lapack_{routine}_ffi: "):
        export.deserialize(data)


def aval_of(text: str) -> ShapedArray:
    shape = tuple(int(n) for n in re.findall(r"(\d+)x", text))
    return ShapedArray(shape, np.dtype("int32" if "i32" in text else "float32"))


def stacked(dtype: str, *shape: int) -> np.ndarray:
    values = np.random.default_rng(0).standard_normal(shape)
    return (values + (1j if dtype[0] == "c" else 0)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_linear_algebra_of_lax_passes_the_check(dtype) -> None:
    """The check of shapes accepts ``lax.linalg``, for stacks, wide and tall matrices."""
    L = lax.linalg
    a, tall, wide = (stacked(dtype, 2, *s) for s in ((4, 4), (5, 3), (3, 5)))
    line = np.ones((2, 4), dtype)
    calls = [
        (L.cholesky, a), (L.lu, tall), (L.lu, wide), (L.eigh, a), (L.eig, a), (L.schur, a),
        (L.hessenberg, a), (L.tridiagonal, a), (lambda x: L.svd(x, full_matrices=True), tall),
        (lambda x: L.svd(x, full_matrices=False), wide),
        (lambda x: L.svd(x, compute_uv=False), wide),
        (lambda x: L.qr(x, full_matrices=False), tall),
        (lambda x: L.qr(x, full_matrices=True), tall),
        (lambda x: L.qr(x, pivoting=True), wide),
        (lambda x: L.triangular_solve(x, x, left_side=True), a),
        (lambda x: L.tridiagonal_solve(line, line, line, x), a),
    ]  # fmt: skip
    for f, x in calls:
        loaded = export.deserialize(export.export(pc.jit(f))(x).serialize())
        assert len(loaded.out_avals) >= 1


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("%c = stablehlo.compare EQ, %i, %i, FLOAT : (tensor<2xi32>, tensor<2xi32>) -> "
         "tensor<2xi1>", "compares i32 by"),
        ("%f = stablehlo.fft %z, type = FFT, length = [57349] : (tensor<2xcomplex<f32>>) -> "
         "tensor<2xcomplex<f32>>", r"its lengths are \[57349\]"),
        ("%l = stablehlo.custom_call @LayoutConstraint(%a) : (tensor<2xf32>) -> tensor<700xf32>",
         "LayoutConstraint returns another type"),
    ],
)  # fmt: skip
def test_operations_that_crash_xla(exported, line, match) -> None:
    text = main(
        "%i = stablehlo.constant dense<1> : tensor<2xi32>\n"
        "%z = stablehlo.complex %a, %a : tensor<2xcomplex<f32>>\n"
        f"{line}\n%r = stablehlo.add %a, %a : tensor<2xf32>"
    )
    data = replaced(exported, mlir_module_serialized=module_of(text))
    with pytest.raises(InvalidArtifactError, match=match):
        export.deserialize(data)


def test_every_lax_primitive_passes_the_check() -> None:
    """Modules of the library's own primitives are accepted."""
    tried = 0
    for prim in primitives_of(lax):
        if prim.state_of(samples) is not RuleState.PRESENT:
            continue
        call = Call(prim, next(iter(prim.require(samples, "this test")())), False, 0)
        with call.mode():
            f = pc.jit(lambda *args, call=call: call.fun(*args))
            traced = f.trace(*map(np.asarray, call.args))
            try:
                lowered = lower_for(traced.jaxpr, "f", ("cpu",))
            except UnknownDimensionError:  # of a variable that no argument determines
                continue
        if not lowered.callbacks and not traced.jaxpr.effects:
            check_module(lowered.module, ())
            tried += 1
    assert tried > 150


# The other process


def flipped(exported: export.Exported, at: int) -> bytes:
    module = bytearray(exported.mlir_module_serialized)
    module[at] ^= 0x41
    return bytes(module)


def test_bytes_that_crash_the_reader_are_errors(exported) -> None:
    """Bytes that may crash jaxlib's reader raise errors."""
    reasons = set()
    for at in range(30, len(exported.mlir_module_serialized), 3):
        try:
            untrusted.check(flipped(exported, at))
        except InvalidArtifactError as e:
            reasons.add("ended" if "crashed the reader process" in str(e) else "refused")
    assert "refused" in reasons


def test_checked_modules_are_cached(exported, monkeypatch) -> None:
    text = main("%r = stablehlo.multiply %a, %a : tensor<2xf32>")
    data = replaced(exported, mlir_module_serialized=module_of(text))
    asked = []
    ask = untrusted._reader.ask
    monkeypatch.setattr(untrusted._reader, "ask", lambda data: asked.append(1) or ask(data))
    monkeypatch.setattr(untrusted, "_location", lambda key: None)
    for _ in range(3):
        np.testing.assert_array_equal(export.deserialize(data).call(X), X * X)
    assert len(asked) == 1
    # Artifacts exported by this process need no check.
    export.deserialize(export.export(pc.jit(lambda x: x - 7))(X).serialize())
    assert len(asked) == 1


def test_a_process_that_cannot_be_started(exported, monkeypatch) -> None:
    text = main("%r = stablehlo.subtract %a, %a : tensor<2xf32>")
    data = replaced(exported, mlir_module_serialized=module_of(text))
    monkeypatch.setattr(untrusted, "_location", lambda key: None)
    monkeypatch.setattr("sys.executable", "/no/such/python")
    monkeypatch.setattr(untrusted, "_reader", untrusted._Reader())
    with pytest.raises(RuntimeError, match="trusted=True"):
        export.deserialize(data)
    np.testing.assert_array_equal(export.deserialize(data, trusted=True).call(X), X - X)


def test_the_checksum_covers_the_header(artifact) -> None:
    head = bytearray(artifact)
    head[10] ^= 1  # the minor version
    with pytest.raises(InvalidArtifactError, match="checksum"):
        export.deserialize(head)
    assert digest(b"") != digest(b"\0")
