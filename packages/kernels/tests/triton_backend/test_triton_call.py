"""Functions of the package ``triton``, and kernels in PTX, on arrays."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
from ttir_evaluator import Buffer, Function

from primax_core import ShapeDtypeStruct, config, jit
from primax_core.extend import native
from primax_kernels import tune_kernels
from primax_kernels._triton.function_text import rewritten
from primax_kernels._triton.triton_call import triton_call_p
from primax_kernels.triton import TritonError, ptx_call, triton_call

triton: Any
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

LIBRARY = os.environ.get("PRIMAX_TEST_CUDA_LIBRARY")
F32 = np.float32
needs_triton = pytest.mark.skipif(
    triton is None, reason="triton_call needs the package triton: pip install triton"
)


def absent(target: str) -> list[Any]:
    try:
        return native.compile_only("cuda", target, library=LIBRARY)[:1]
    except ImportError as error:
        pytest.skip(f"{error}; or set PRIMAX_TEST_CUDA_LIBRARY")


def array(n: int = 300) -> Any:
    return np.arange(n, dtype=F32)


def like(*shape: int, dtype: Any = F32) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype)


if triton is not None:

    @triton.jit
    def add_kernel(x_ptr, y_ptr, n, out_ptr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        total = tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask)
        tl.store(out_ptr + at, total, mask=mask)

    @triton.jit
    def scale_first(out_ptr, x_ptr, factor, BLOCK: tl.constexpr, OFFSET: tl.constexpr = 1.0):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) * factor + OFFSET)

    @triton.jit
    def increment(x_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)

    @triton.jit
    def histogram(x_ptr, n, out_ptr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.atomic_add(out_ptr + tl.load(x_ptr + at, mask=mask), 1, mask=mask)

    @triton.jit
    def matmul_kernel(
        a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
    ):
        rows = tl.program_id(0) * BM + tl.arange(0, BM)
        columns = tl.program_id(1) * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            inner = k + tl.arange(0, BK)
            a = tl.load(a_ptr + rows[:, None] * K + inner[None, :])
            b = tl.load(b_ptr + inner[:, None] * N + columns[None, :])
            total = tl.dot(a, b, total)
        tl.store(c_ptr + rows[:, None] * N + columns[None, :], total)

    @triton.jit
    def softmax_kernel(x_ptr, out_ptr, n: tl.constexpr):
        at = tl.program_id(0) * n + tl.arange(0, n)
        x = tl.load(x_ptr + at)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + at, e / tl.sum(e, axis=0))

    @triton.jit
    def wrong(x_ptr, out_ptr, BLOCK: tl.constexpr):
        tl.store(out_ptr + tl.arange(0, BLOCK), undefined_name)  # noqa: F821


def add(x: Any, y: Any, **parameters: Any) -> Any:
    def grid(p: dict[str, Any]) -> int:
        return -(-x.size // p["BLOCK"])

    parameters = {"BLOCK": 128, **parameters}
    return triton_call(add_kernel, x, y, x.size, out_shape=like(x.size), grid=grid, **parameters)


def matmul(a: Any, b: Any, **parameters: Any) -> Any:
    (m, k), n = a.shape, b.shape[1]
    parameters = {"BM": 64, "BN": 64, "BK": 32, **parameters}
    return triton_call(
        matmul_kernel, a, b, M=m, N=n, K=k, out_shape=like(m, n),
        grid=lambda p: (m // p["BM"], n // p["BN"]), **parameters,
    )  # fmt: skip


def text_of(fun: Any, *args: Any) -> str:
    return jit(fun).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def evaluated(fun: Any, *args: Any) -> list[Any]:
    """Results of a function that is one call, by NumPy."""
    jaxpr = jit(fun).trace(*args).jaxpr
    (eqn,) = [e for e in jaxpr.eqns if e.primitive is triton_call_p]
    function, zeroed = eqn.params["function"], eqn.params["zeroed"]
    outs = [np.full(a.shape, 77, a.dtype) for a in eqn.params["out_avals"]]
    ins = [np.array(x) for x in args]
    for i, o in eqn.params["aliases"]:
        if i < len(args):
            outs[o] = ins[i]
    for o in zeroed:
        outs[o] = np.zeros_like(outs[o])
    buffers = [Buffer(x) for x in [*ins, *(outs[o] for o in zeroed), *outs]]
    text = re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", function.text("sm_90")[1])
    Function(text).run(buffers, eqn.params["grid"])
    return outs


# Values


@needs_triton
def test_values() -> None:
    (out,) = evaluated(add, array(), 2 * array())
    np.testing.assert_array_equal(out, 3 * array())


@needs_triton
def test_results_that_come_first() -> None:
    def call(x: Any) -> Any:
        return triton_call(
            scale_first, x, 2.5, out_shape=like(64), grid=1, outputs=["out_ptr"], BLOCK=64
        )

    (out,) = evaluated(call, array(64))
    np.testing.assert_array_equal(out, array(64) * F32(2.5) + 1)


@needs_triton
def test_operands_updated_in_place() -> None:
    def call(x: Any) -> Any:
        return triton_call(
            increment, x, 300, out_shape=like(300), grid=(3,), input_output_aliases={0: 0},
            BLOCK=128,
        )  # fmt: skip

    (out,) = evaluated(call, array())
    np.testing.assert_array_equal(out, array() + 1)
    assert "output_operand_alias" in text_of(call, array())


@needs_triton
def test_results_that_begin_with_zeros() -> None:
    def call(x: Any) -> Any:
        return triton_call(
            histogram, x, 300, out_shape=like(8, dtype=np.int32), grid=5, zeroed_outputs=[0],
            BLOCK=64,
        )  # fmt: skip

    text = text_of(call, np.zeros(300, np.int32))
    assert "output_operand_alias" in text
    assert "(tensor<300xi32>, tensor<8xi32>) -> tensor<8xi32>" in text
    x = np.arange(300, dtype=np.int32) % 7
    np.testing.assert_array_equal(evaluated(call, x)[0], np.bincount(x, minlength=8))


@needs_triton
def test_text() -> None:
    text = text_of(lambda x, y: add(x, y, num_warps=8, num_stages=2), array(), array())
    assert "@__gpu$xla.gpu.triton" in text and 'name = "add_kernel"' in text
    assert "num_warps = 8 : i32" in text and "num_stages = 2 : i32" in text
    assert "grid_x = 3 : i32" in text and "= arith.constant 300 : i32" in text
    assert "test_triton_call.py" not in text
    config.update("compilation_cache_include_metadata_in_key", True)
    try:
        text = text_of(lambda x, y: add(x, y, num_warps=8), array(), array())
        (out,) = evaluated(add, array(), 2 * array())
    finally:
        config.update("compilation_cache_include_metadata_in_key", False)
    assert re.search(r"test_triton_call\.py\\22:\d+:", text)
    np.testing.assert_array_equal(out, 3 * array())


@needs_triton
@pytest.mark.parametrize(
    ("value", "constant"),
    [
        (3, "arith.constant 3 : i32"), (2**40, f"arith.constant {2**40} : i64"),
        (0.5, "arith.constant 0.5 : f32"), (True, "arith.constant true"),
        (np.float16(0.5), "arith.constant 0.5 : f16"), (np.int64(3), "arith.constant 3 : i64"),
        (np.uint8(200), "arith.constant -56 : i8"),
        (float("inf"), "arith.constant 0x7F800000 : f32"),
    ],
)  # fmt: skip
def test_scalars(value: Any, constant: str) -> None:
    def call(x: Any) -> Any:
        return triton_call(
            scale_first, x, value, out_shape=like(64), grid=1, outputs=["out_ptr"], BLOCK=64
        )

    assert f" = {constant}\\0A" in text_of(call, array(64))


# Compilation for GPUs that are absent


@needs_triton
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["add", "matmul", "softmax", "histogram"])
def test_compiles(name: str, target: str) -> None:
    def softmax(x: Any) -> Any:
        return triton_call(softmax_kernel, x, out_shape=x, grid=x.shape[0], n=x.shape[1])

    def count(x: Any) -> Any:
        return triton_call(
            histogram, x, 300, out_shape=like(8, dtype=np.int32), grid=5, zeroed_outputs=[0],
            BLOCK=64,
        )  # fmt: skip

    calls: dict[str, tuple[Any, ...]] = {
        "add": (add, array(), array()),
        "matmul": (matmul, np.zeros((128, 64), np.float16), np.zeros((64, 128), np.float16)),
        "softmax": (softmax, np.zeros((4, 256), F32)),
        "histogram": (count, np.zeros(300, np.int32)),
    }
    fun, *args = calls[name]
    lowered = jit(fun).trace(*args).lower(lowering_platforms=("cuda",))
    compiled = lowered.compile(devices=absent(target))
    assert b"\x7fELF" in compiled.runtime_executable().serialize()


@needs_triton
def test_the_target_reaches_the_compiler() -> None:
    targets: list[int] = []

    def call(x: Any) -> Any:
        return triton_call(softmax_kernel, x, out_shape=x, grid=x.shape[0], n=x.shape[1])

    lowered = jit(call).trace(np.zeros((4, 64), F32)).lower(lowering_platforms=("cuda",))
    from triton.backends import compiler

    class Target(compiler.GPUTarget):
        def __init__(self, backend: str, arch: int, warp_size: int):
            targets.append(arch)
            super().__init__(backend, arch, warp_size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "GPUTarget", Target)
        lowered.compile(devices=absent("sm_80"))
    assert targets == [80]


# Configurations


@needs_triton
def test_configurations_of_the_package(tmp_path: Any) -> None:
    configs = [
        triton.Config({"BLOCK": 64}, num_warps=2, num_stages=1), triton.Config({"BLOCK": 256}),
    ]  # fmt: skip
    tuned = triton.autotune(configs=configs, key=["n"])(add_kernel)
    before = config.kernel_tuning_dir
    config.update("kernel_tuning_dir", str(tmp_path))
    try:

        def call(x: Any, y: Any) -> Any:
            return triton_call(
                tuned, x, y, 300, out_shape=like(300), grid=lambda p: triton.cdiv(300, p["BLOCK"])
            )

        text = text_of(call, array(), array())
        assert "grid_x = 5 : i32" in text and "num_warps = 2 : i32" in text
        (out,) = evaluated(call, array(), array())
        np.testing.assert_array_equal(out, 2 * array())
        with (
            tune_kernels(True),
            pytest.raises(RuntimeError, match=r"no configuration of .*add_kernel can be used"),
        ):
            call(array(), array())  # there is no GPU
    finally:
        config.update("kernel_tuning_dir", before)


@needs_triton
def test_heuristics() -> None:
    fitted = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
    (out,) = evaluated(
        lambda x, y: triton_call(fitted(add_kernel), x, y, 300, out_shape=like(300), grid=1),
        array(), array(),
    )  # fmt: skip
    np.testing.assert_array_equal(out, 2 * array())


@needs_triton
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pre_hook": lambda args: None}, "has a pre_hook"),
        ({"num_ctas": 2}, "has num_ctas, for which XLA has no parameter"),
        ({"maxnreg": 64}, "has maxnreg"),
    ],
)
def test_configurations_that_xla_cannot_use(values: dict[str, Any], message: str) -> None:
    tuned = triton.autotune(configs=[triton.Config({"BLOCK": 64}, **values)], key=["n"])
    with pytest.raises(ValueError, match=message):
        triton_call(tuned(add_kernel), array(), array(), 300, out_shape=like(300), grid=1)


# Errors


@needs_triton
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"BLOK": 3}, TypeError, "add_kernel has no parameter BLOK; it has x_ptr, y_ptr, n"),
        ({"num_warps": 3}, ValueError, "num_warps is 1, 2, 4, 8, 16 or 32"),
        ({"num_warps": "4"}, ValueError, "num_warps is a positive integer, got '4'"),
        ({"num_stages": 0}, ValueError, "num_stages is a positive integer, got 0"),
        ({"outputs": ["out"]}, ValueError, "outputs has 'out', which is no parameter"),
        ({"BLOCK": np.ones(3)}, TypeError, "BLOCK of add_kernel is an array"),
        ({"zeroed_outputs": [1]}, ValueError, "name each of 1 results at most once"),
        ({"input_output_aliases": {2: 0}}, ValueError, r"the arrays are the arguments \[0, 1\]"),
        ({"input_output_aliases": {0: 0}, "zeroed_outputs": [0]}, ValueError, "at most once"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        add(array(), array(), **parameters)


@needs_triton
def test_wrong_arguments() -> None:
    x = array()
    with pytest.raises(TypeError, match="parameters y_ptr, n, out_ptr without values, for results"):
        triton_call(add_kernel, x, out_shape=like(300), grid=1, BLOCK=64)
    with pytest.raises(TypeError, match="add_kernel lacks values for BLOCK"):
        triton_call(add_kernel, x, x, 3, out_shape=like(300), grid=1)
    with pytest.raises(TypeError, match="scale_first lacks values for factor"):
        triton_call(scale_first, x, out_shape=x, grid=1, BLOCK=64, outputs=["out_ptr"])
    with pytest.raises(TypeError, match="takes 4 arguments by position"):
        triton_call(add_kernel, x, x, 3, 4, 5, out_shape=like(300), grid=1, BLOCK=64)
    with pytest.raises(TypeError, match=r"takes a function of @triton\.jit, got"):
        triton_call(add, x, out_shape=like(300), grid=1)
    with pytest.raises(TritonError, match="x_ptr: Triton has no elements of type complex64"):
        add(x.astype(np.complex64), x)
    with pytest.raises(TypeError, match="grid is an integer"):
        triton_call(add_kernel, x, x, 3, out_shape=like(300), grid=1.5, BLOCK=64)
    for grid in (0, (1, 2, 3, 4), (1, 70000)):
        with pytest.raises(ValueError, match="grid"):
            triton_call(add_kernel, x, x, 3, out_shape=like(300), grid=grid, BLOCK=64)
    with pytest.raises(TypeError, match="out_shape is a pytree of shapes"):
        triton_call(add_kernel, x, x, 3, out_shape=3, grid=1, BLOCK=64)
    with pytest.raises(ValueError, match="but argument 0 is"):
        triton_call(
            increment, x, 3, out_shape=like(3), grid=1, BLOCK=64, input_output_aliases={0: 0}
        )


@needs_triton
def test_functions_that_do_not_compile() -> None:
    def call(x: Any) -> Any:
        return triton_call(wrong, x, out_shape=x, grid=1, BLOCK=64)

    with pytest.raises(TritonError, match="undefined_name") as info:
        text_of(call, array(64))
    assert "the function wrong does not compile for sm_90" in str(info.value)


@needs_triton
def test_other_platforms() -> None:
    with pytest.raises(TritonError, match=r"add_kernel runs on NVIDIA GPUs, .* compiled for cpu"):
        add(array(), array())


@pytest.mark.skipif(triton is not None, reason="the package triton is installed")
def test_the_package_is_named() -> None:
    with pytest.raises(ImportError, match=r"pip install 'primax-kernels\[triton\]'"):
        triton_call(add, array(), out_shape=like(300), grid=1)


# The text of functions


HEAD = (
    "module {\n  tt.func public @f(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32} "
    'loc("a,(b"(#loc)), %n: i32, %o: !tt.ptr<i8>) attributes {noinline = false} {\n'
    "    tt.return\n  }\n}\n"
)


def test_parameters_in_another_order() -> None:
    name, text = rewritten(
        HEAD, ["a", "n", "o"], ["o", "zeros", "a"], {"zeros": np.dtype(F32)}, {"n": 7}
    )
    assert name == "f"
    assert text == (
        "module {\n  tt.func public @f(%o: !tt.ptr<i8>, %zeros: !tt.ptr<f32>, "
        '%a: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("a,(b"(#loc))) attributes '
        "{noinline = false} {\n    %n = arith.constant 7 : i32\n    tt.return\n  }\n}\n"
    )


def test_other_texts() -> None:
    with pytest.raises(TritonError, match="no public function"):
        rewritten("module {}", [], [], {}, {})
    with pytest.raises(TritonError, match="the function f has 3 parameters, expected a, n"):
        rewritten(HEAD, ["a", "n"], ["a"], {}, {"n": 7})
    with pytest.raises(TritonError, match=r"the parameter %o of type !tt.ptr<i8> is no scalar"):
        rewritten(HEAD, ["a", "n", "o"], ["a"], {}, {"n": 1, "o": 2})


# PTX

PTX = """
.version 7.0
.target sm_80
.address_size 64
// .entry not_this_one(.param .u64 p0)
.visible .entry add_one(.param .u64 p0, .param .u64 p1)
{
  .reg .b64 %rd<6>; .reg .b32 %r<3>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4]; add.f32 %f2, %f1, 0f3F800000; st.global.f32 [%rd5], %f2;
  ret;
}
"""


def add_one(x: Any, text: str = PTX, **changes: Any) -> Any:
    keywords: dict[str, Any] = {"name": "add_one", "out_shape": x, "grid": 1, "block": 32}
    return ptx_call(text, x, **{**keywords, **changes})


def test_ptx_in_the_program() -> None:
    text = text_of(lambda x: add_one(x, block=(8, 4), shared_memory=64), array(32))
    assert "@__gpu$xla.gpu.ptx" in text and 'kernel_type = "ptx"' in text
    assert "block_x = 8 : i32, block_y = 4 : i32, block_z = 1 : i32" in text
    assert "shared_mem_bytes = 64 : i32" in text
    aliased = text_of(lambda x: add_one(x, input_output_aliases={0: 0}), array(32))
    assert "output_operand_alias" in aliased


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_ptx_is_accepted_by_xla(target: str) -> None:
    lowered = jit(add_one).trace(array(32)).lower(lowering_platforms=("cuda",))
    compiled = lowered.compile(devices=absent(target))
    assert b"add_one" in compiled.runtime_executable().serialize()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"name": "not_this_one"}, ValueError, "has no .entry not_this_one; it has add_one"),
        ({"out_shape": [array(), array()]}, ValueError, "has 2 parameters, and the call has 3"),
        ({"text": "ret;"}, ValueError, "the text is no PTX"),
        ({"text": b"ret;"}, TypeError, "takes PTX as text, got bytes"),
        ({"block": 2048}, ValueError, "with 1024 threads in all, got 2048"),
        ({"block": (64, 64)}, ValueError, "with 1024 threads"),
        ({"block": 0}, ValueError, "block is at most"),
        ({"block": 1.5}, TypeError, "block is an integer"),
        ({"grid": 0}, ValueError, "positive numbers"),
        ({"shared_memory": 1 << 20}, ValueError, "shared_memory is between 0 and"),
        ({"shared_memory": -1}, ValueError, "shared_memory is between 0 and"),
    ],
)
def test_wrong_ptx_calls(changes: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        add_one(array(), **changes)


def test_ptx_for_another_gpu() -> None:
    lowered = jit(lambda x: add_one(x, PTX.replace("sm_80", "sm_90a"))).trace(array(32))
    lowered = lowered.lower(lowering_platforms=("cuda",))
    with pytest.raises(TritonError, match="add_one is for sm_90a, and the program is compiled for"):
        lowered.compile(devices=[native.AbsentDevice("cuda", "sm_80", None)])
    with pytest.raises(TritonError, match="ptx_call of add_one runs on NVIDIA GPUs"):
        add_one(array(32))
