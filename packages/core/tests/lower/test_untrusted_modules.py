"""Damaged and malicious modules: specific errors, and nothing is executed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax
from primax_core._ir.symbolic_dims import UnknownDimensionError
from primax_core._lower import solver_calls, untrusted
from primax_core._lower.inspection import check_module
from primax_core._lower.platforms import lower_for
from primax_core._lower.portable import as_text
from primax_core.errors import InvalidArtifactError
from primax_core.extend import RuleState, ShapedArray, samples
from primax_core.extend.portable_modules import (
    PortableProgram,
    call_exported_p,
    check_portable,
    lower_portable,
    text_of,
)
from primax_core.testing import primitives_of
from primax_core.testing.calls import Call

X = np.arange(2, dtype=np.float32)
AVAL = ShapedArray((2,), np.dtype(np.float32))


@pytest.fixture(scope="module")
def data() -> bytes:
    return lower_portable(pc.jit(lambda x: x + x).trace(X), ("cpu",)).to_bytes()


def check(data: bytes, **options) -> None:
    check_portable(data, [AVAL], [AVAL], **options)


def call(data: bytes) -> pc.Array:
    program = PortableProgram("f", data, ("cpu",), (AVAL,), (AVAL,), (0,))
    return call_exported_p.bind(X, exported=program, out_avals=(AVAL,))[0]


@pytest.mark.parametrize(
    ("ins", "outs", "match"),
    [
        ((), (AVAL,), "not have the arguments that"),
        ((AVAL.update(shape=(3,)),), (AVAL,), "not have the arguments that"),
        ((AVAL,), (AVAL.update(dtype=np.dtype(np.int32)),), "not have the results that"),
        ((AVAL,), (AVAL.update(shape=(1 << 60, 16)),), "damaged"),
    ],
)
def test_signatures(data, ins, outs, match) -> None:
    check(data)
    assert "stablehlo.add" in text_of(data)
    with pytest.raises(InvalidArtifactError, match=match):
        check_portable(data, ins, outs)


@pytest.mark.parametrize("data", [b"", b"ML\xefR"])
def test_other_bytes(data) -> None:
    with pytest.raises(InvalidArtifactError, match="artifact's module"):
        check(data)


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


def chain(n: int, body: str = "{}") -> str:
    """Functions that call each other, the last one first, with calls in this place."""
    first = (
        "func.func private @f0(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
    )
    calls = [F_CALLS.format(body.format(CALL_F.replace("@f", f"@f{i}"))) for i in range(n - 1)]
    return "\n".join([first, *(c.replace("@f(%a:", f"@f{i + 1}(%a:") for i, c in enumerate(calls))])


NESTED = (
    "%p = stablehlo.constant dense<true> : tensor<i1>\n"
    + "".join(f'%r{i} = "stablehlo.if"(%p) ({{{{\n' for i in range(20))
    + "{}\nstablehlo.return %r : tensor<2xf32>\n"
    + "".join(
        "}}, {{ stablehlo.return %a : tensor<2xf32> }}) : (tensor<i1>) -> tensor<2xf32>\n"
        + (f"stablehlo.return %r{i} : tensor<2xf32>\n" if i else "")
        for i in reversed(range(20))
    )
    + "%r = stablehlo.add %r0, %r0 : tensor<2xf32>"
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
            "more elements than XLA can index",
        ),
        (
            main("%z = stablehlo.iota dim = 0 : tensor<68719476736xi32>\n"
                 "%r = stablehlo.add %a, %a : tensor<2xf32>"),
            "more elements than XLA can index",
        ),
        (main(CALL_F.replace("@f", "@f299"), chain(300)), "call each other too deeply"),
        (main(CALL_F.replace("@f", "@f9"), chain(10, NESTED)), "call each other too deeply"),
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
def test_modules_that_would_crash_the_process(text, match) -> None:
    data = module_of(text)
    for trusted in (False, True):
        with pytest.raises(InvalidArtifactError, match=match):
            check(data, trusted=trusted)


def native(target: str, more: str = "") -> str:
    return main(
        f"%r = stablehlo.custom_call @{target}(%a) {more} : (tensor<2xf32>) -> tensor<2xf32>"
    )


@pytest.mark.parametrize(
    "target",
    ["TopK", "os_system", "xla.sdy.FuncResultSharding", "SPMDFullToShardShape",
     "SPMDShardToFullShape"],
)  # fmt: skip
def test_native_functions(target) -> None:
    data = module_of(native(target))
    with pytest.raises(InvalidArtifactError, match=f"calls the native function '{target}'"):
        check(data)
    # The exporter may have allowed it: the module is accepted, but cannot be called.
    check(data, allowed=[target])
    for run in (call, pc.jit(lambda: call(data))):
        with pytest.raises(InvalidArtifactError, match="trusted=True"):
            run(data) if run is call else run()


def test_native_functions_of_trusted_modules() -> None:
    """A trusted module reaches XLA, which does not know the function."""
    data = module_of(native("no_such_function"))
    check(data, allowed=["no_such_function"], trusted=True)
    with pytest.raises(pc.errors.JaxRuntimeError, match="NOT_FOUND"):
        call(data)


@pytest.mark.parametrize(
    "target", ["xla_ffi_python_cpu_callback", "xla_python_cpu_callback",
               "xla_ffi_python_gpu_callback", "xla_ffi_partitioned_python_cpu_callback"],
)  # fmt: skip
def test_python_callbacks_are_never_allowed(target) -> None:
    data = module_of(native(target, "{api_version = 4 : i32, backend_config = {index = 0 : ui64}}"))
    for trusted in (False, True):
        with pytest.raises(InvalidArtifactError, match=target):
            check(data, allowed=[target], trusted=trusted)


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
def test_solver_calls_with_wrong_shapes(routine, config, operands, results) -> None:
    """jaxlib's functions do not check shapes and would write out of bounds."""
    refuse(f"lapack_{routine}_ffi", config, operands, results)


@pytest.mark.parametrize(
    ("target", "config", "operands", "results"),
    [
        ("cusolver_potrf_ffi", "lower = true", [BIG], [SMALL, INFO]),
        ("cusolver_getrf_ffi", "", [BIG], [BIG, "tensor<1xi32>", INFO]),
        ("cusolver_geqrf_ffi", "", [BIG], [BIG, "tensor<1xf32>"]),
        ("cusolver_orgqr_ffi", "", [SMALL, "tensor<600xf32>"], [SMALL]),
        ("cusolver_syevd_ffi", "lower = true", [BIG], [BIG, "tensor<1xf32>", INFO]),
        ("cusolver_sytrd_ffi", "lower = true", [BIG], [BIG, *["tensor<2xf32>"] * 3, INFO]),
        ("cusolver_gesvd_ffi", "compute_uv = true, full_matrices = true",
         [BIG], [BIG, "tensor<600xf32>", SMALL, SMALL, INFO]),
        ("cusolver_gesvdj_ffi", "compute_uv = false, full_matrices = true",
         [BIG], [BIG, "tensor<600xf32>", SMALL, SMALL, INFO]),
        ("cusparse_gtsv2_ffi", "", ["tensor<9xf32>", "tensor<9xf32>", "tensor<9xf32>",
         "tensor<9x2xf32>"], [SMALL]),
        ("cu_lu_pivots_to_permutation", "", ["tensor<600xi32>"], ["tensor<2xi32>"]),
        ("cu_lu_pivots_to_permutation", "", [], ["tensor<2xi32>"]),
    ],
)  # fmt: skip
def test_calls_of_cusolver_with_wrong_shapes(target, config, operands, results) -> None:
    refuse(target, config, operands, results)


def refuse(target, config, operands, results) -> None:
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(operands))
    passed = ", ".join(f"%a{i}" for i in range(len(operands)))
    n = len(results)
    returned = ", ".join(f"%r#{i}" for i in range(n)) if n > 1 else "%r"
    names = f"%r:{n}" if n > 1 else "%r"
    types = ", ".join(results)
    text = (
        f"module {{ func.func public @main({arguments}) -> ({types}) {{ {names}"
        f" = stablehlo.custom_call @{target}({passed}) {{api_version = 4 : i32, "
        f"backend_config = {{{config}}}}} : ({', '.join(operands)}) -> ({types})\n"
        f"return {returned} : {types} }} }}"
    )
    with pytest.raises(InvalidArtifactError, match=f"is invalid: {target}: "):
        check_portable(module_of(text), [*map(aval_of, operands)], [*map(aval_of, results)])


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
        traced = pc.jit(f).trace(x)
        data = lower_portable(traced, ("cpu",)).to_bytes()
        check_portable(data, traced.jaxpr.in_avals, traced.jaxpr.out_avals)
        assert len(traced.jaxpr.out_avals) >= 1


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
def test_operations_that_crash_xla(line, match) -> None:
    text = main(
        "%i = stablehlo.constant dense<1> : tensor<2xi32>\n"
        "%z = stablehlo.complex %a, %a : tensor<2xcomplex<f32>>\n"
        f"{line}\n%r = stablehlo.add %a, %a : tensor<2xf32>"
    )
    with pytest.raises(InvalidArtifactError, match=match):
        check(module_of(text))


SORT = """%i = stablehlo.iota dim = 0 : tensor<64xTYPE>
%s = "stablehlo.sort"(%i) <{{dimension = 0 : i64, is_stable = false}}> ({{
^bb0(%x: tensor<TYPE>, %y: tensor<TYPE>):
{}
stablehlo.return %c : tensor<i1> }}) : (tensor<64xTYPE>) -> tensor<64xTYPE>
%r = stablehlo.add %a, %a : tensor<2xf32>"""
PAIR = "%x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"
FLOATS = "(tensor<f32>, tensor<f32>) -> tensor<i1>"


@pytest.mark.parametrize(
    ("element", "comparator"),
    [
        ("i32", f"%c = stablehlo.compare NE, {PAIR}"),
        ("i32", f"%c = stablehlo.compare LE, {PAIR}"),
        ("i32", "%c = stablehlo.constant dense<true> : tensor<i1>"),
        ("i32", f"%d = stablehlo.compare LT, {PAIR}\n%c = stablehlo.not %d : tensor<i1>"),
        ("i32", f"%d = stablehlo.compare LT, {PAIR}\n%e = stablehlo.compare GT, {PAIR}\n"
                "%c = stablehlo.or %d, %e : tensor<i1>"),
        ("i32", "%z = stablehlo.negate %x : tensor<i32>\n%c = stablehlo.compare LT, %z, %y, SIGNED "
                ": (tensor<i32>, tensor<i32>) -> tensor<i1>"),
        ("f32", f"%c = stablehlo.compare LT, %x, %y, FLOAT : {FLOATS}"),  # of NaN no order
    ],
)  # fmt: skip
def test_comparators_that_are_no_order(element, comparator) -> None:
    """XLA's sort would read and write past its buffer."""
    text = main(SORT.replace("TYPE", element).format(comparator))
    with pytest.raises(InvalidArtifactError, match="sort is invalid: its comparator is not"):
        check(module_of(text))


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_comparators_that_are_orders(direction) -> None:
    compare = f"%c = stablehlo.compare {direction}, %x, %y, TOTALORDER : {FLOATS}"
    check(module_of(main(SORT.replace("TYPE", "f32").format(compare))))


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "bool", "bfloat16", "uint32"])
@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_sorts_of_lax_pass_the_check(dtype, num_keys) -> None:
    x = np.ones(3, pc.dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    values = (x, np.ones(3, np.float32), np.ones(3, np.int32))
    traced = pc.jit(lambda *xs: lax.sort(xs, num_keys=num_keys)).trace(*values)
    data = lower_portable(traced, ("cpu", "tpu")).to_bytes()
    platform = ShapedArray((), np.dtype(np.int32))
    check_portable(data, [platform, *traced.jaxpr.in_avals], traced.jaxpr.out_avals)


@pytest.mark.parametrize(
    ("attributes", "match"),
    [
        (f"window_dimensions = array<i64: {2**62}>, padding = dense<[[{2**62 - 1}, 0]]>",
         "window_dimensions are"),
        (f"window_dimensions = array<i64: 1>, window_dilations = array<i64: {2**40}>, "
         "padding = dense<[[0, 0]]>", "window_dilations are"),
    ],
)  # fmt: skip
def test_huge_windows(attributes, match) -> None:
    text = main(f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
        %r = "stablehlo.reduce_window"(%a, %z) ({{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %s = stablehlo.add %x, %y : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }}) {{{attributes} : tensor<1x2xi64>}} : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>""")
    with pytest.raises(InvalidArtifactError, match=f"reduce_window is invalid: its {match}"):
        check(module_of(text))


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


def flipped(data: bytes, at: int) -> bytes:
    module = bytearray(data)
    module[at] ^= 0x41
    return bytes(module)


def test_bytes_that_crash_the_reader_are_errors(data) -> None:
    """Bytes that may crash jaxlib's reader raise errors."""
    reasons = set()
    for at in range(30, len(data), 3):
        try:
            untrusted.check(flipped(data, at))
        except InvalidArtifactError as e:
            reasons.add("ended" if "crashed the reader process" in str(e) else "refused")
    assert "refused" in reasons


def test_checked_modules_are_cached(monkeypatch) -> None:
    data = module_of(main("%r = stablehlo.multiply %a, %a : tensor<2xf32>"))
    asked = []
    ask = untrusted._reader.ask
    monkeypatch.setattr(untrusted._reader, "ask", lambda data: asked.append(1) or ask(data))
    monkeypatch.setattr(untrusted, "_location", lambda key: None)
    for _ in range(3):
        check(data)
        np.testing.assert_array_equal(call(data), X * X)
    assert len(asked) == 1
    # Modules of this process need no check.
    check(lower_portable(pc.jit(lambda x: x - 7).trace(X), ("cpu",)).to_bytes())
    assert len(asked) == 1


def test_a_process_that_ended_is_replaced_and_its_pipes_are_closed() -> None:
    data = module_of(main("%r = stablehlo.add %a, %a : tensor<2xf32>"))
    reader = untrusted._Reader()
    assert reader.ask(data) == ""
    first = reader.process
    first.kill()
    first.wait()
    assert reader.ask(data) == ""
    assert first.stdin.closed and first.stdout.closed and reader.process is not first
    reader.stop()


def test_a_process_that_cannot_be_started(monkeypatch) -> None:
    data = module_of(main("%r = stablehlo.subtract %a, %a : tensor<2xf32>"))
    monkeypatch.setattr(untrusted, "_location", lambda key: None)
    monkeypatch.setattr("sys.executable", "/no/such/python")
    monkeypatch.setattr(untrusted, "_reader", untrusted._Reader())
    with pytest.raises(RuntimeError, match="trusted=True"):
        check(data)
    check(data, trusted=True)
    np.testing.assert_array_equal(call(data), X - X)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_linear_algebra_on_gpus_passes_the_check(dtype) -> None:
    L = lax.linalg
    square, tall, wide = (stacked(dtype, 2, *s) for s in ((4, 4), (40, 34), (3, 1500)))
    bands = [np.ones((2, 4), dtype)] * 3
    calls = [
        (L.cholesky, square), (L.lu, tall), (L.lu, wide), (L.qr, tall), (L.eigh, square),
        (L.tridiagonal, square), (L.svd, tall), (L.svd, wide),
        (lambda x: L.svd(x, full_matrices=False), tall),
        (lambda x: L.svd(x, compute_uv=False), wide),
        (lambda x: L.tridiagonal_solve(*bands, x), square),
    ]  # fmt: skip
    targets: set[str] = set()
    for f, x in calls:
        traced = pc.jit(f).trace(x)
        module = lower_portable(traced, ("cuda",))
        check_portable(module.to_bytes(), traced.jaxpr.in_avals, traced.jaxpr.out_avals)
        targets.update(re.findall(r"@(cu\w+)\(", as_text(module.to_bytes())))
    assert targets == set(solver_calls._ON_GPUS)
